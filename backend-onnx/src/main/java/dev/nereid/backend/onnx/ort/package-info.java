/**
 * Binding of ONNX Runtime's C API by foreign functions.
 *
 * <p>Starting points: {@link dev.nereid.backend.onnx.ort.OrtLibrary} loads the native library, {@link
 * dev.nereid.backend.onnx.ort.OrtSession} is a loaded model, {@link dev.nereid.backend.onnx.ort.OrtExecution} runs it;
 * {@link dev.nereid.backend.natives.ReferenceCount} decides when an object may be released.
 */
@NullMarked
package dev.nereid.backend.onnx.ort;

import org.jspecify.annotations.NullMarked;
