/**
 * An example of a decoupled backend that sends n responses for the number n.
 *
 * <p>Starting points: {@link dev.nereid.examples.square.SquareBackendProvider}, named in the jar's
 * {@code META-INF/services}, and {@link dev.nereid.examples.square.SquareInstance}, which does the work.
 */
@NullMarked
package dev.nereid.examples.square;

import org.jspecify.annotations.NullMarked;
