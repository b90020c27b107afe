package dev.nereid.server.options;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.memory.GpuAccess;
import dev.nereid.server.memory.TensorMemoryBound;
import java.util.Optional;
import java.util.OptionalLong;

/**
 * Options of tensor memory. Immutable.
 *
 * @param limit the limit of tensor memory in use and idle, beyond which requests are refused; empty for half of the
 *     memory that the process may have beside its heap, and at least 64 MiB: the other half is for backends in native
 *     code
 * @param idleBytes the limit of idle memory; empty for 256 MiB, or an eighth of {@code limit} if that is less
 * @param poisonFreed whether memory is overwritten when it is freed, so that a later use by a backend is noticed; for
 *     debugging, since it takes time
 * @param clientSharedMemory whether clients may register shared memory for inputs and outputs; a client that reaches
 *     the server can then read and write every POSIX shared memory segment that the server's user can
 * @param gpus the memory of GPUs; the server closes it at its end
 */
public record MemoryOptions(
        Optional<TensorMemoryBound> limit,
        OptionalLong idleBytes,
        boolean poisonFreed,
        boolean clientSharedMemory,
        GpuAccess gpus) {
    /** The defaults of the command line. */
    public static final MemoryOptions DEFAULT =
            new MemoryOptions(Optional.empty(), OptionalLong.empty(), false, false, GpuAccess.NONE);

    /** Checks the components. */
    public MemoryOptions {
        requireNonNull(limit, "limit");
        requireNonNull(idleBytes, "idleBytes");
        requireNonNull(gpus, "gpus");
    }

    /**
     * Creates options without GPUs.
     *
     * @param limit the limit of tensor memory, as above
     * @param idleBytes the limit of idle memory, as above
     * @param poisonFreed whether memory is overwritten when it is freed
     * @param clientSharedMemory whether clients may register shared memory
     */
    public MemoryOptions(
            Optional<TensorMemoryBound> limit,
            OptionalLong idleBytes,
            boolean poisonFreed,
            boolean clientSharedMemory) {
        this(limit, idleBytes, poisonFreed, clientSharedMemory, GpuAccess.NONE);
    }

    /**
     * Replaces the GPUs.
     *
     * @param access the GPUs, closed by the server at its end
     * @return the changed options
     */
    public MemoryOptions withGpus(GpuAccess access) {
        return new MemoryOptions(limit, idleBytes, poisonFreed, clientSharedMemory, access);
    }

    /**
     * Replaces the limit of tensor memory.
     *
     * @param bytes at least 1
     * @return the changed options
     * @throws IllegalArgumentException if it is less than 1
     */
    public MemoryOptions withLimit(long bytes) {
        return new MemoryOptions(
                Optional.of(TensorMemoryBound.of(bytes)), idleBytes, poisonFreed, clientSharedMemory, gpus);
    }

    /**
     * Replaces the limit of idle memory.
     *
     * @param bytes the limit
     * @return the changed options
     */
    public MemoryOptions withIdleBytes(long bytes) {
        return new MemoryOptions(limit, OptionalLong.of(bytes), poisonFreed, clientSharedMemory, gpus);
    }

    /**
     * Replaces whether freed memory is overwritten.
     *
     * @param poison {@code true} to overwrite it
     * @return the changed options
     */
    public MemoryOptions withPoisonFreed(boolean poison) {
        return new MemoryOptions(limit, idleBytes, poison, clientSharedMemory, gpus);
    }

    /**
     * Replaces whether clients may register shared memory.
     *
     * @param allowed {@code true} to allow it
     * @return the changed options
     */
    public MemoryOptions withClientSharedMemory(boolean allowed) {
        return new MemoryOptions(limit, idleBytes, poisonFreed, allowed, gpus);
    }
}
