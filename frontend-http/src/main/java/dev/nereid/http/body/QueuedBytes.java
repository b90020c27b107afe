package dev.nereid.http.body;

import io.netty.channel.Channel;
import io.netty.util.Attribute;
import io.netty.util.AttributeKey;
import io.vertx.core.http.HttpConnection;
import io.vertx.core.net.impl.ConnectionBase;

/**
 * Counts the JSON bytes on the heap that wait for one client. Most of them are queued before the transport, whose own
 * buffer has a bound. Confined to the event loop of the connection.
 */
public final class QueuedBytes {
    private static final AttributeKey<QueuedBytes> KEY = AttributeKey.valueOf(QueuedBytes.class, "count");

    private long count;
    private long added;
    /** What waited at the last measurement, in the buffers of the transport too; 0 if nothing did. */
    private long pendingBefore;

    private long drainNanos;

    /** Returns the counter of a connection. */
    public static QueuedBytes of(HttpConnection connection) {
        return of(((ConnectionBase) connection).channel());
    }

    /** Returns the counter of a connection. */
    public static QueuedBytes of(Channel connection) {
        Attribute<QueuedBytes> attribute = connection.attr(KEY);
        QueuedBytes known = attribute.get();
        if (known == null) {
            known = new QueuedBytes();
            attribute.set(known);
        }
        return known;
    }

    /** Counts bytes that were given to the transport, or negative numbers of those that it does not have any more. */
    public void add(long bytes) {
        count += bytes;
        added += Math.max(0, bytes);
    }

    /**
     * Measures how fast the client reads.
     *
     * @param elapsed how long the last measurement is ago
     * @param buffered what waits in the buffers of the transport
     */
    public void measure(long elapsed, long buffered) {
        long now = count == 0 ? 0 : count + buffered;
        long sent = Math.max(1, pendingBefore + added - now);
        drainNanos = pendingBefore == 0 || now == 0 ? 0 : (long) ((double) count * elapsed / sent);
        pendingBefore = now;
        added = 0;
    }

    /** Returns how long it takes until the client has read what waits, as fast as it read between the last measurements. */
    public long drainNanos() {
        return drainNanos;
    }

    /** Returns how many bytes wait. */
    public long count() {
        return count;
    }
}
