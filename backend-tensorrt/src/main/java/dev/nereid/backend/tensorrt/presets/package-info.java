/**
 * TensorRT through the presets of JavaCPP, which are loaded here and nowhere else.
 *
 * <p>Starting point: {@link dev.nereid.backend.tensorrt.presets.NvInferLoader}.
 */
@NullMarked
package dev.nereid.backend.tensorrt.presets;

import org.jspecify.annotations.NullMarked;
