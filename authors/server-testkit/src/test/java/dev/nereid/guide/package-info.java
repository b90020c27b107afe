/** The tests that {@code docs/backend-authors.md} shows. */
@NullMarked
package dev.nereid.guide;

import org.jspecify.annotations.NullMarked;
