/**
 * An example of a decoupled backend: it answers the number n with n responses.
 *
 * <p>Starting points: {@link dev.nereid.examples.square.SquareBackendProvider}, named in the jar's
 * {@code META-INF/services}, and {@link dev.nereid.examples.square.SquareInstance}, which does the work.
 */
@NullMarked
package dev.nereid.examples.square;

import org.jspecify.annotations.NullMarked;
