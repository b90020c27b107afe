package dev.nereid.http;

import io.netty.channel.Channel;
import io.netty.util.Attribute;
import io.netty.util.AttributeKey;
import io.vertx.core.http.HttpConnection;
import io.vertx.core.net.impl.ConnectionBase;

/**
 * Counts the bytes of long texts on the heap that wait for the client of one connection. Most of them are queued before
 * the transport, whose own buffer has a bound. Confined to the event loop of the connection.
 */
final class QueuedBytes {
    private static final AttributeKey<QueuedBytes> KEY = AttributeKey.valueOf(QueuedBytes.class, "count");

    private long count;

    /** Returns the counter of a connection. */
    static QueuedBytes of(HttpConnection connection) {
        return of(((ConnectionBase) connection).channel());
    }

    /** Returns the counter of a connection. */
    static QueuedBytes of(Channel connection) {
        Attribute<QueuedBytes> attribute = connection.attr(KEY);
        QueuedBytes known = attribute.get();
        if (known == null) {
            known = new QueuedBytes();
            attribute.set(known);
        }
        return known;
    }

    /** Counts bytes that were given to the transport, or negative numbers of those that it does not have any more. */
    void add(long bytes) {
        count += bytes;
    }

    /** Returns how many bytes wait. */
    long count() {
        return count;
    }
}
