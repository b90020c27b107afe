package dev.nereid.server.options;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.memory.GpuAccess;
import dev.nereid.server.memory.TensorMemoryBound;
import java.time.Duration;
import java.util.Optional;
import java.util.OptionalLong;

/**
 * Options of tensor memory. Immutable.
 *
 * @param limit the limit of tensor memory in use and idle, beyond which requests are refused; empty for half of the
 *     memory that the process may have beside its heap, and at least 64 MiB: the other half is for backends in native
 *     code
 * @param idleBytes the limit of idle memory; empty for 256 MiB, or an eighth of {@code limit} if that is less
 * @param returnAfter the time without requests and loads after which the process returns what it does not use to the
 *     operating system; empty for never. It collects the heap then, which belongs to an embedding program too
 * @param poisonFreed whether memory is overwritten when it is freed, so that a later use by a backend is noticed; for
 *     debugging, since it takes time
 * @param clientSharedMemory whether clients may register shared memory for inputs and outputs; a client that reaches
 *     the server can then read and write every POSIX shared memory segment that the server's user can
 * @param gpus the memory of GPUs; the server closes it at its end
 */
public record MemoryOptions(
        Optional<TensorMemoryBound> limit,
        OptionalLong idleBytes,
        Optional<Duration> returnAfter,
        boolean poisonFreed,
        boolean clientSharedMemory,
        GpuAccess gpus) {
    public MemoryOptions {
        requireNonNull(limit, "limit");
        requireNonNull(idleBytes, "idleBytes");
        requireNonNull(returnAfter, "returnAfter");
        requireNonNull(gpus, "gpus");
    }
}
