/** Binding of ONNX Runtime's C API by foreign functions. */
@NullMarked
package dev.nereid.backend.onnx.ort;

import org.jspecify.annotations.NullMarked;
