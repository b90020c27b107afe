/**
 * The backend for engines of TensorRT on NVIDIA GPUs.
 *
 * <p>Starting points: {@link dev.nereid.backend.tensorrt.TensorRtBackendProvider}, which reports that this version of
 * the server cannot run such models.
 */
@NullMarked
package dev.nereid.backend.tensorrt;

import org.jspecify.annotations.NullMarked;
