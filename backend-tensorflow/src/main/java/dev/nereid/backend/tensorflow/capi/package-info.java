/**
 * Binding of TensorFlow's C API by foreign functions, built like that of ONNX Runtime.
 *
 * <p>Starting points: {@link dev.nereid.backend.tensorflow.capi.NativeLibrary} finds and unpacks the native library,
 * {@link dev.nereid.backend.tensorflow.capi.TfLibrary} loads it, {@link dev.nereid.backend.tensorflow.capi.TfSession} is
 * a loaded model, {@link dev.nereid.backend.tensorflow.capi.TfExecution} runs it; {@link
 * dev.nereid.backend.tensorflow.capi.ReferenceCount} decides when an object may be released.
 *
 * <p>{@code ReferenceCount} and {@code OptionValues} are those of {@code backend-onnx}, word for word, and a test compares
 * them: for two small classes, a module of its own would be one more jar in each plugin and one more artifact of a release.
 */
@NullMarked
package dev.nereid.backend.tensorflow.capi;

import org.jspecify.annotations.NullMarked;
