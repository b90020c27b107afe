/**
 * An example of a backend for sequences with the direct strategy, which keeps its state by itself.
 *
 * <p>Starting points: {@link dev.nereid.examples.sequence.SequenceBackendProvider}, named in the jar's
 * {@code META-INF/services}, and {@link dev.nereid.examples.sequence.SequenceInstance}, which adds up.
 */
@NullMarked
package dev.nereid.examples.sequence;

import org.jspecify.annotations.NullMarked;
