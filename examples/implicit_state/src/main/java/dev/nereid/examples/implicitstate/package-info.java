/**
 * An example of a backend for sequences with states that the server keeps, as a test of such states.
 *
 * <p>Starting points: {@link dev.nereid.examples.implicitstate.ImplicitStateBackendProvider}, named in the jar's
 * {@code META-INF/services}, and {@link dev.nereid.examples.implicitstate.ImplicitStateInstance}, which uses the states.
 */
@NullMarked
package dev.nereid.examples.implicitstate;

import org.jspecify.annotations.NullMarked;
