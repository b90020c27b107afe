/**
 * The ONNX Runtime backend: its C API bound by foreign functions, without JNI.
 *
 * <p>Starting points: {@link dev.nereid.backend.onnx.OrtLibrary} loads the native library,
 * {@link dev.nereid.backend.onnx.OrtSession} is a loaded model, {@link dev.nereid.backend.onnx.OrtExecution} runs it. What
 * may be released when is decided by {@link dev.nereid.backend.onnx.Lifetime} alone.
 */
@NullMarked
package dev.nereid.backend.onnx;

import org.jspecify.annotations.NullMarked;
