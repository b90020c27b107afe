/** Comparisons with exchanges that were recorded from the reference server; skipped where the record is not there. */
@NullMarked
package dev.nereid.server.golden;

import org.jspecify.annotations.NullMarked;
