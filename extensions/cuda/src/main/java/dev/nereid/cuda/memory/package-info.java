/**
 * Memory of GPUs and pinned memory of the host as the server uses it for tensors.
 *
 * <p>Starting points: {@link dev.nereid.cuda.memory.GpuMemory} and {@link dev.nereid.cuda.memory.PinnedMemory}, each of
 * which takes its memory from the driver once and divides it.
 */
@NullMarked
package dev.nereid.cuda.memory;

import org.jspecify.annotations.NullMarked;
