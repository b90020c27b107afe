/**
 * Examples of backends for sequences with the direct and the oldest strategy, which keep their state themselves.
 *
 * <p>Starting points: {@link dev.nereid.examples.sequence.SequenceBackendProvider} and
 * {@link dev.nereid.examples.sequence.DynaSequenceBackendProvider}, named in the jar's {@code META-INF/services}, and
 * {@link dev.nereid.examples.sequence.DirectSums} and {@link dev.nereid.examples.sequence.OldestSums}, which add up.
 */
@NullMarked
package dev.nereid.examples.sequence;

import org.jspecify.annotations.NullMarked;
