/**
 * The ONNX Runtime backend: implements the SPI on the binding in {@code ort}.
 *
 * <p>Starting points: {@link dev.nereid.backend.onnx.OnnxBackendProvider} is what the server finds,
 * {@link dev.nereid.backend.onnx.OnnxModel} a loaded model, {@link dev.nereid.backend.onnx.OnnxInstance} runs its
 * batches; {@link dev.nereid.backend.onnx.OnnxModelOptions} has all that a configuration can say.
 *
 * <p>Below them, in the classes named {@code Ort…}: {@link dev.nereid.backend.onnx.ort.OrtLibrary} loads the native
 * library, {@link dev.nereid.backend.onnx.ort.OrtSession} is a loaded model, {@link dev.nereid.backend.onnx.ort.OrtExecution}
 * runs it. What may be released when is decided by {@link dev.nereid.backend.onnx.ort.ReferenceCount} alone.
 */
@NullMarked
package dev.nereid.backend.onnx;

import org.jspecify.annotations.NullMarked;
