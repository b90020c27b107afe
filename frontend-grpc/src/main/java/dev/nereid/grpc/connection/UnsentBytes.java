package dev.nereid.grpc.connection;

import io.grpc.Attributes;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Counts bytes of large responses that the transport has not sent. Lock-free; safe for use by any thread.
 *
 * <p>The transport copies a message at once into unbounded memory. So the copies are counted, also as unread on their
 * connection. Small copies are not counted: the limit on calls bounds their number.
 */
public final class UnsentBytes {
    /** Less than twice the minimum that the transport allocates for a message. */
    public static final int SMALL_BYTES = 8 << 10;

    private final TransportMemory memory;
    private final Attributes connection;
    private final AtomicLong counted = new AtomicLong();

    public UnsentBytes(TransportMemory memory, Attributes connection) {
        this.memory = memory;
        this.connection = connection;
    }

    /** Counts the only message of a call, as {@link #add} does. */
    public static UnsentBytes of(int bytes, TransportMemory memory, Attributes connection) {
        UnsentBytes sent = new UnsentBytes(memory, connection);
        sent.add(bytes);
        return sent;
    }

    /**
     * Counts a message that is about to be sent.
     *
     * @throws dev.nereid.api.InferenceException if there is no memory for it
     */
    public void add(int bytes) {
        if (bytes <= SMALL_BYTES) {
            return;
        }
        memory.reserve(bytes);
        ConnectionLimits guarded = connection.get(ConnectionLimits.KEY);
        if (guarded != null) {
            guarded.unread().addBytes(bytes);
        }
        counted.addAndGet(bytes);
    }

    /** Ends the count of all messages so far. The transport has sent them, or will not. */
    public void clear() {
        if (counted.get() == 0) {
            return;
        }
        long bytes = counted.getAndSet(0);
        if (bytes > 0) {
            memory.release(bytes);
            ConnectionLimits guarded = connection.get(ConnectionLimits.KEY);
            if (guarded != null) {
                guarded.unread().removeBytes(bytes);
            }
        }
    }
}
