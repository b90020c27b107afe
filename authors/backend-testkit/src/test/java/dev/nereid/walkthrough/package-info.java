/** The code of {@code docs/spi-1.0.md}, and tests of it. */
@NullMarked
package dev.nereid.walkthrough;

import org.jspecify.annotations.NullMarked;
