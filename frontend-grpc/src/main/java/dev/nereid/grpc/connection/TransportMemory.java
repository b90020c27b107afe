package dev.nereid.grpc.connection;

import dev.nereid.api.InferenceException;
import dev.nereid.api.memory.TensorMemory;
import dev.nereid.spi.ErrorCode;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Counts the memory of large messages that the transport holds. Lock-free; safe for use by any thread.
 *
 * <p>The buffers of the transport are direct memory, of which the JVM has a limit, and without which no connection can read
 * or write. So messages have a part of it and no more. They are counted as tensor memory too, which bounds the process.
 */
public final class TransportMemory {
    /** When to ask again for what there is no room for at this moment. */
    private static final Duration RETRY_AFTER = Duration.ofSeconds(1);

    private final TensorMemory memory;
    private final long limit;
    private final AtomicLong used = new AtomicLong();

    /**
     * Creates a count of nothing.
     *
     * @param memory where bytes are counted too
     * @param limit how many bytes messages may take
     */
    public TransportMemory(TensorMemory memory, long limit) {
        this.memory = memory;
        this.limit = limit;
    }

    /**
     * Counts bytes.
     *
     * @throws InferenceException if there is no room for them
     */
    void reserve(long bytes) {
        long now = used.addAndGet(bytes);
        if (now > limit) {
            used.addAndGet(-bytes);
            String problem = "no memory for " + bytes + " bytes of a message: " + (now - bytes) + " bytes of at most "
                    + limit + " wait";
            throw bytes > limit
                    ? new InferenceException(ErrorCode.UNAVAILABLE, problem) // nor will there ever be
                    : InferenceException.overloaded(problem, RETRY_AFTER);
        }
        try {
            memory.reserveBytes(bytes);
        } catch (InferenceException e) {
            used.addAndGet(-bytes);
            throw e;
        }
    }

    /** Ends the count of bytes. */
    void release(long bytes) {
        used.addAndGet(-bytes);
        memory.releaseBytes(bytes);
    }
}
