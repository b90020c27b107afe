/**
 * The backend for SavedModels and frozen graphs of TensorFlow.
 *
 * <p>Starting points: {@link dev.nereid.backend.tensorflow.TensorFlowBackendProvider} creates the backend, {@link
 * dev.nereid.backend.tensorflow.TensorFlowModel} loads a model, {@link
 * dev.nereid.backend.tensorflow.TensorFlowInstance} executes batches; the package {@code graph} reads files, and {@code
 * capi} binds the native library.
 */
@NullMarked
package dev.nereid.backend.tensorflow;

import org.jspecify.annotations.NullMarked;
