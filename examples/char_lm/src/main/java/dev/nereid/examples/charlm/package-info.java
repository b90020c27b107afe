/**
 * An example of a backend for iterative sequences: a language model that writes character by character.
 *
 * <p>Starting points: {@link dev.nereid.examples.charlm.CharLmBackendProvider}, named in the jar's
 * {@code META-INF/services}, and {@link dev.nereid.examples.charlm.CharLmInstance}, which writes one character of each
 * request of a batch.
 */
@NullMarked
package dev.nereid.examples.charlm;

import org.jspecify.annotations.NullMarked;
