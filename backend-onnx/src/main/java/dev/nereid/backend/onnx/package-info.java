/**
 * The ONNX Runtime backend: the C API of ONNX Runtime bound by foreign functions, without JNI, and the SPI on top of
 * it.
 *
 * <p>Starting points: {@link dev.nereid.backend.onnx.OnnxBackendProvider} is what the server finds,
 * {@link dev.nereid.backend.onnx.OnnxModel} a loaded model, {@link dev.nereid.backend.onnx.OnnxInstance} runs its
 * batches; {@link dev.nereid.backend.onnx.ModelOptions} has all that a configuration can say.
 *
 * <p>Below them, in the classes named {@code Ort…}: {@link dev.nereid.backend.onnx.OrtLibrary} loads the native
 * library, {@link dev.nereid.backend.onnx.OrtSession} is a loaded model, {@link dev.nereid.backend.onnx.OrtExecution}
 * runs it. What may be released when is decided by {@link dev.nereid.backend.onnx.Lifetime} alone.
 */
@NullMarked
package dev.nereid.backend.onnx;

import org.jspecify.annotations.NullMarked;
