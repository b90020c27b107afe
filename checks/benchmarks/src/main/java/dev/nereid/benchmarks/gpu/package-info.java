/**
 * Checks of a machine with a GPU: the device layer, the server with a kernel behind it, and backends with libraries of
 * their own, each as one line that says PASS, FAIL or SKIP.
 *
 * <p>Starting point: {@link dev.nereid.benchmarks.gpu.GpuCheck}, which {@code checks/benchmarks/gpu-check} runs.
 */
@NullMarked
package dev.nereid.benchmarks.gpu;

import org.jspecify.annotations.NullMarked;
