/**
 * What the backend asks of TensorRT, without its types, so that all else is tested without it.
 *
 * <p>Starting point: {@link dev.nereid.backend.tensorrt.runtime.TensorRtRuntime}.
 */
@NullMarked
package dev.nereid.backend.tensorrt.runtime;

import org.jspecify.annotations.NullMarked;
