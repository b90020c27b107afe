package dev.nereid.grpc.connection;

import dev.nereid.api.Refusals;
import dev.nereid.api.frontend.ConnectionLimiter;
import io.grpc.Attributes;
import io.grpc.Grpc;
import io.grpc.ServerTransportFilter;
import io.netty.channel.Channel;
import io.netty.channel.EventLoop;
import io.netty.handler.codec.http2.Http2Connection;
import io.netty.handler.codec.http2.Http2ConnectionHandler;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Bounds the connections, open calls and unread responses of a front end's clients. Safe for use by any thread;
 * connections are watched on their event loops.
 */
public final class ConnectionRegistry extends ServerTransportFilter {
    private static final Logger LOG = LoggerFactory.getLogger(ConnectionRegistry.class);
    private static final long LOG_INTERVAL_NANOS = 1_000_000_000;

    private final ConnectionLimiter limiter;
    private final ConnectionServices services;
    private final LongSupplier nanoTime;

    /** Connections in their handshakes, by the address objects of their channels. */
    private final Map<SocketAddress, Channel> handshaking = Collections.synchronizedMap(new IdentityHashMap<>());

    private final Map<EventLoop, EventLoopConnections> loops = new ConcurrentHashMap<>();
    private final AtomicLong disconnects = new AtomicLong();
    private final AtomicLong nextLog;

    public ConnectionRegistry(
            TransportMemory memory,
            Executor workers,
            ConnectionLimiter limiter,
            OpenCallLimit calls,
            StalledConnections unread,
            Refusals refusals,
            LongSupplier nanoTime) {
        this.limiter = limiter;
        this.nanoTime = nanoTime;
        this.nextLog = new AtomicLong(nanoTime.getAsLong());
        this.services = new ConnectionServices(calls, unread, memory, workers, refusals, nanoTime, this::logDisconnect);
    }

    /** Counts an accepted connection. Returns false, without counting it, if it exceeds the limit. */
    boolean accept(Channel channel) {
        if (!(channel.remoteAddress() instanceof InetSocketAddress remote)) {
            return false; // the client has disconnected
        }
        InetAddress client = remote.getAddress();
        if (!limiter.tryOpen(client)) {
            return false;
        }
        handshaking.put(remote, channel);
        var _ = channel.closeFuture().addListener(_ -> {
            handshaking.remove(remote);
            limiter.closed(client);
        });
        return true;
    }

    @Override
    public Attributes transportReady(Attributes attributes) {
        @Nullable SocketAddress remote = attributes.get(Grpc.TRANSPORT_ATTR_REMOTE_ADDR);
        @Nullable Channel channel = remote == null ? null : handshaking.remove(remote);
        @Nullable
        Http2ConnectionHandler http2 =
                channel == null ? null : channel.pipeline().get(Http2ConnectionHandler.class);
        if (channel == null || http2 == null) {
            LOG.debug("connection of {} is not watched", remote);
            return attributes;
        }
        EventLoopConnections loop = loops.computeIfAbsent(
                channel.eventLoop(), key -> new EventLoopConnections(key, services.calls(), loops.values()));
        Http2Connection streams = http2.connection();
        ArrivingMessages messages = new ArrivingMessages(streams, services.memory());
        ConnectionLimits connection = new ConnectionLimits(services, loop, channel, http2, messages);
        loop.add(connection);
        connection.start();
        CallAdmission admission = new CallAdmission(connection, http2, messages, services.calls(), services.refusals());
        http2.decoder()
                .frameListener(new LimitingFrameListener(
                        http2.decoder().frameListener(), connection, admission, messages, streams));
        return attributes.toBuilder().set(ConnectionLimits.KEY, connection).build();
    }

    /** Logs that a connection was closed, at most once a second. */
    private void logDisconnect(SocketAddress client, String reason) {
        long count = disconnects.incrementAndGet();
        long now = nanoTime.getAsLong();
        long next = nextLog.get();
        if (now - next >= 0 && nextLog.compareAndSet(next, now + LOG_INTERVAL_NANOS)) {
            LOG.atWarn()
                    .addKeyValue("client", client)
                    .addKeyValue("reason", reason)
                    .addKeyValue("closedSinceStart", count)
                    .log("connection closed");
        }
    }
}
