/**
 * An example of a backend for sequences with the oldest strategy, which keeps its state by itself.
 *
 * <p>Starting points: {@link dev.nereid.examples.dynasequence.DynaSequenceBackendProvider}, named in the jar's
 * {@code META-INF/services}, and {@link dev.nereid.examples.dynasequence.DynaSequenceInstance}, which adds up.
 */
@NullMarked
package dev.nereid.examples.dynasequence;

import org.jspecify.annotations.NullMarked;
