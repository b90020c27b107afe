package dev.nereid.cuda.memory;

import java.util.Map;

/**
 * How the server uses GPUs. Immutable.
 *
 * @param pinnedBytes the pinned memory of the host to take, in bytes; 0 for none
 * @param poolBytes the memory to take of single GPUs, in bytes, by their numbers; 0 for none
 * @param minMajor the major part of the lowest compute capability of GPUs that are used
 * @param minMinor its minor part
 * @param peerAccess whether GPUs may access the memory of others
 */
public record GpuOptions(
        long pinnedBytes, Map<Integer, Long> poolBytes, int minMajor, int minMinor, boolean peerAccess) {
    /** The memory that is taken of a GPU by default, in bytes. */
    public static final long DEFAULT_POOL_BYTES = 64L << 20;

    /** The defaults of the reference server: 256 MiB pinned, 64 MiB of each GPU, compute capability 6.0. */
    public static final GpuOptions DEFAULT = new GpuOptions(256L << 20, Map.of(), 6, 0, true);

    public GpuOptions {
        poolBytes = Map.copyOf(poolBytes);
    }

    long poolBytesOf(int gpu) {
        return poolBytes.getOrDefault(gpu, DEFAULT_POOL_BYTES);
    }

    /** Returns whether a compute capability is high enough. */
    boolean supports(int major, int minor) {
        return major > minMajor || (major == minMajor && minor >= minMinor);
    }
}
