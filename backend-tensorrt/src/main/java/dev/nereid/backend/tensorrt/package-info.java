/**
 * The backend for engines of TensorRT on NVIDIA GPUs.
 *
 * <p>Starting points: {@link dev.nereid.backend.tensorrt.TensorRtBackendProvider}; {@link
 * dev.nereid.backend.tensorrt.TensorRtInstance}, which executes batches.
 */
@NullMarked
package dev.nereid.backend.tensorrt;

import org.jspecify.annotations.NullMarked;
