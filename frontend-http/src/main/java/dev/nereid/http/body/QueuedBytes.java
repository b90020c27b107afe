package dev.nereid.http.body;

import io.netty.channel.Channel;
import io.netty.util.Attribute;
import io.netty.util.AttributeKey;
import io.vertx.core.http.HttpConnection;
import io.vertx.core.net.impl.ConnectionBase;

/**
 * Counts the JSON bytes on the heap that wait for one client. Most of them are queued before the transport, which has a
 * limited buffer. Confined to the event loop of the connection.
 */
public final class QueuedBytes {
    private static final AttributeKey<QueuedBytes> KEY = AttributeKey.valueOf(QueuedBytes.class, "count");

    private long count;
    private long added;
    /** The bytes that waited at the last measurement, including bytes in the transport's buffers. */
    private long pendingBefore;

    private long drainNanos;

    public static QueuedBytes of(HttpConnection connection) {
        return of(((ConnectionBase) connection).channel());
    }

    public static QueuedBytes of(Channel connection) {
        Attribute<QueuedBytes> attribute = connection.attr(KEY);
        QueuedBytes counter = attribute.get();
        if (counter == null) {
            counter = new QueuedBytes();
            attribute.set(counter);
        }
        return counter;
    }

    /** Adds bytes passed to the transport. A negative number removes bytes that were sent or dropped. */
    public void add(long bytes) {
        count += bytes;
        added += Math.max(0, bytes);
    }

    /** Measures the client's rate: nanoseconds since the last measurement, and bytes in the transport's buffers. */
    public void measure(long elapsed, long buffered) {
        long now = count == 0 ? 0 : count + buffered;
        long sent = Math.max(1, pendingBefore + added - now);
        drainNanos = pendingBefore == 0 || now == 0 ? 0 : (long) ((double) count * elapsed / sent);
        pendingBefore = now;
        added = 0;
    }

    /** Returns how long the client takes to read the waiting bytes, at the rate between the last two measurements. */
    public long drainNanos() {
        return drainNanos;
    }

    public long count() {
        return count;
    }
}
