package dev.nereid.grpc.connection;

import io.grpc.Attributes;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Counts the heap bytes of one call's request until the call ends. Lock-free; safe for use by any thread.
 *
 * <p>The limit on calls bounds what small requests take, so they are not counted.
 */
public final class HeldBytes {
    private static final long SMALL_BYTES = 1 << 10;

    private final Attributes connection;
    private final AtomicLong counted = new AtomicLong();

    public HeldBytes(Attributes connection) {
        this.connection = connection;
    }

    /**
     * Counts a request, unless it is small.
     *
     * @throws dev.nereid.api.InferenceException if there is no memory for it
     */
    public void hold(long bytes) {
        if (bytes > SMALL_BYTES) {
            add(bytes);
        }
    }

    /**
     * Counts bytes.
     *
     * @throws dev.nereid.api.InferenceException if there is no memory for them
     */
    public void add(long bytes) {
        ConnectionLimits guarded = connection.get(ConnectionLimits.KEY);
        if (guarded != null) {
            guarded.memory().reserve(bytes);
            counted.addAndGet(bytes);
        }
    }

    public void clear() {
        long bytes = counted.getAndSet(0);
        ConnectionLimits guarded = connection.get(ConnectionLimits.KEY);
        if (bytes > 0 && guarded != null) {
            guarded.memory().release(bytes);
        }
    }
}
