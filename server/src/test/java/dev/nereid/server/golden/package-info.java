/** Comparisons with recorded exchanges of the reference server. They are skipped where the record does not exist. */
@NullMarked
package dev.nereid.server.golden;

import org.jspecify.annotations.NullMarked;
