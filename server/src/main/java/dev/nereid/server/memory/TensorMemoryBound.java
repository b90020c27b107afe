package dev.nereid.server.memory;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;

/**
 * The limit of tensor memory, and a warning about its derivation. Immutable.
 *
 * @param bytes the limit, at least 1
 * @param shortage the problem with the memory that it was derived from; empty if there is none, or if it was set
 */
public record TensorMemoryBound(long bytes, String shortage) {
    /** No default is less. */
    static final long MIN_BYTES = 64L << 20;

    /** The part of the bound that inputs in flight may take by default. */
    private static final double IN_FLIGHT_PART = 0.75;

    private static final long MIB = 1L << 20;

    public TensorMemoryBound {
        if (bytes < 1) {
            throw new IllegalArgumentException("memoryLimit: " + bytes + " (expected: 1 byte or more)");
        }
    }

    /**
     * Returns a bound that was set.
     *
     * @throws IllegalArgumentException if it is less than 1
     */
    public static TensorMemoryBound of(long bytes) {
        return new TensorMemoryBound(bytes, "");
    }

    /**
     * Derives the bound of this process. It depends on the memory of the machine or of the container, and on the
     * largest heap.
     */
    public static TensorMemoryBound ofProcess() {
        long heap = Runtime.getRuntime().maxMemory();
        return ManagementFactory.getOperatingSystemMXBean() instanceof OperatingSystemMXBean system
                ? derive(system.getTotalMemorySize(), heap)
                : derive(2 * heap, heap);
    }

    /**
     * Derives a limit, which is half of the memory beside the heap. The other half is for native parts of backends.
     *
     * @param memory the memory that the process may have, in bytes
     * @param heap the maximum of its heap, in bytes
     * @return the limit, at least 64 MiB
     */
    static TensorMemoryBound derive(long memory, long heap) {
        long half = (memory - heap) / 2;
        return half >= MIN_BYTES
                ? new TensorMemoryBound(half, "")
                : new TensorMemoryBound(
                        MIN_BYTES,
                        "a heap of " + heap / MIB + " MiB leaves too little of " + memory / MIB
                                + " MiB: lower -Xmx in NEREID_JAVA_OPTIONS, or set --tensor-memory-pool-byte-size");
    }

    /**
     * Returns the default limit of the input bytes of requests in flight. It leaves memory for outputs.
     *
     * @return three quarters of the limit, at least 1
     */
    public long inFlightBytes() {
        return Math.max(1, (long) (bytes * IN_FLIGHT_PART));
    }
}
