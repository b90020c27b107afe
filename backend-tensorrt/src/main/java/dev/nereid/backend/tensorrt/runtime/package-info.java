/**
 * The functions of TensorRT for the backend, without its types, so that all other code is tested without it.
 *
 * <p>Starting point: {@link dev.nereid.backend.tensorrt.runtime.TensorRtRuntime}.
 */
@NullMarked
package dev.nereid.backend.tensorrt.runtime;

import org.jspecify.annotations.NullMarked;
