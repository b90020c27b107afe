package dev.nereid.grpc.connection;

import dev.nereid.api.InferenceException;
import dev.nereid.api.memory.TensorMemory;
import dev.nereid.spi.ErrorCode;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Counts the memory of large messages that the transport holds. Lock-free; safe for use by any thread.
 *
 * <p>The transport's buffers are direct memory, which the JVM limits, and without which no connection can read or
 * write. So messages may take only a part of it. They also count as tensor memory, which is limited for the process.
 */
public final class TransportMemory {
    /** The time after which a refused client may retry. */
    private static final Duration RETRY_AFTER = Duration.ofSeconds(1);

    private final TensorMemory memory;
    private final long limit;
    private final AtomicLong used = new AtomicLong();

    /** Creates an empty count with a maximum of bytes of messages, which {@code memory} counts, too. */
    public TransportMemory(TensorMemory memory, long limit) {
        this.memory = memory;
        this.limit = limit;
    }

    /**
     * Counts bytes.
     *
     * @throws InferenceException if there is no memory for them
     */
    void reserve(long bytes) {
        long now = used.addAndGet(bytes);
        if (now > limit) {
            used.addAndGet(-bytes);
            String problem = "no memory for " + bytes + " bytes of a message: " + (now - bytes) + " bytes of at most "
                    + limit + " wait";
            throw bytes > limit
                    ? new InferenceException(ErrorCode.UNAVAILABLE, problem) // a retry would fail, too
                    : InferenceException.overloaded(problem, RETRY_AFTER);
        }
        try {
            memory.reserveBytes(bytes);
        } catch (InferenceException e) {
            used.addAndGet(-bytes);
            throw e;
        }
    }

    void release(long bytes) {
        used.addAndGet(-bytes);
        memory.releaseBytes(bytes);
    }
}
