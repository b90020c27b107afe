/**
 * GPUs through the CUDA driver API, {@code libcuda.so.1}, which is opened and bound at run time.
 *
 * <p>Starting points: {@link dev.nereid.cuda.GpuDiscovery}, which finds the GPUs; {@link
 * dev.nereid.cuda.GpuMonitor}, which reads utilization, memory and power; {@code CudaDriver}, the calls of the driver, so
 * that all else is tested without it.
 */
@NullMarked
package dev.nereid.cuda;

import org.jspecify.annotations.NullMarked;
