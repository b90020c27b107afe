/**
 * An example of a backend for iterative sequences, which counts down and keeps its state.
 *
 * <p>Starting points: {@link dev.nereid.examples.iterativesequence.IterativeSequenceBackendProvider}, named in the jar's
 * {@code META-INF/services}, and {@link dev.nereid.examples.iterativesequence.IterativeSequenceInstance}, which counts.
 */
@NullMarked
package dev.nereid.examples.iterativesequence;

import org.jspecify.annotations.NullMarked;
