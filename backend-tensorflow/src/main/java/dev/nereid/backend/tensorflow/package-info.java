/**
 * The backend for graphs and saved models of TensorFlow.
 *
 * <p>Starting points: {@link dev.nereid.backend.tensorflow.TensorFlowBackendProvider}, which reports that this version
 * of the server cannot run such models.
 */
@NullMarked
package dev.nereid.backend.tensorflow;

import org.jspecify.annotations.NullMarked;
