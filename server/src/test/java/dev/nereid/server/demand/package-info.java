/** Tests of loads on demand. */
@NullMarked
package dev.nereid.server.demand;

import org.jspecify.annotations.NullMarked;
