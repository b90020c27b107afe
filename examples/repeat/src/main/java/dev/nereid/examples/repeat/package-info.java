/**
 * An example of a decoupled backend that goes on after its execution has returned: it answers each element of its input
 * on its own, after a delay.
 *
 * <p>Starting points: {@link dev.nereid.examples.repeat.RepeatBackendProvider}, named in the jar's
 * {@code META-INF/services}, and {@link dev.nereid.examples.repeat.Repetition}, which sends the responses of a request.
 */
@NullMarked
package dev.nereid.examples.repeat;

import org.jspecify.annotations.NullMarked;
