/**
 * An example of a decoupled backend that sends responses after its execution has returned.
 *
 * <p>Starting points: {@link dev.nereid.examples.repeat.RepeatBackendProvider}, named in the jar's
 * {@code META-INF/services}, and {@link dev.nereid.examples.repeat.Repetition}, which sends the responses of a request.
 */
@NullMarked
package dev.nereid.examples.repeat;

import org.jspecify.annotations.NullMarked;
