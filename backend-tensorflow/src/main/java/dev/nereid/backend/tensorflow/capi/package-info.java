/**
 * Binding of TensorFlow's C API by foreign functions, built like that of ONNX Runtime.
 *
 * <p>Starting points: {@link dev.nereid.backend.tensorflow.capi.NativePlatform} finds the native library, {@link
 * dev.nereid.backend.tensorflow.capi.TfLibrary} loads it, {@link dev.nereid.backend.tensorflow.capi.TfSession} is a loaded
 * model, {@link dev.nereid.backend.tensorflow.capi.TfExecution} runs it; {@link
 * dev.nereid.backend.natives.ReferenceCount} decides when an object may be released.
 */
@NullMarked
package dev.nereid.backend.tensorflow.capi;

import org.jspecify.annotations.NullMarked;
