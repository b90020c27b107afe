/**
 * The ONNX Runtime backend: implements the SPI on the binding in {@code ort}.
 *
 * <p>Starting points: {@link dev.nereid.backend.onnx.OnnxBackendProvider} is the entry point for the server,
 * {@link dev.nereid.backend.onnx.OnnxModel} a loaded model, {@link dev.nereid.backend.onnx.OnnxInstance} runs its
 * batches; {@link dev.nereid.backend.onnx.OnnxModelOptions} has all options of a configuration except GPU options,
 * which {@link dev.nereid.backend.onnx.OnnxAccelerators} maps to execution providers.
 *
 * <p>The binding of ONNX Runtime is {@link dev.nereid.backend.onnx.ort}.
 */
@NullMarked
package dev.nereid.backend.onnx;

import org.jspecify.annotations.NullMarked;
