package dev.nereid.grpc;

import dev.nereid.api.ConnectionLimiter;
import dev.nereid.api.InferenceException;
import dev.nereid.api.Refusals;
import dev.nereid.api.RequestProtocol;
import io.grpc.Attributes;
import io.grpc.Grpc;
import io.grpc.ServerTransportFilter;
import io.netty.channel.Channel;
import io.netty.channel.EventLoop;
import io.netty.handler.codec.http2.Http2ConnectionHandler;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.IdentityHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;
import java.util.function.LongSupplier;
import java.util.function.ToIntFunction;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Bounds what the clients of a front end can hold: connections, open calls, responses that they do not read. Safe for
 * use by any thread; connections are watched on their event loops.
 *
 * <p>The event loop of a connection looks at it four times a second while it has calls, and sooner if their number doubles.
 */
final class ConnectionGuard extends ServerTransportFilter {
    private static final Logger LOG = LoggerFactory.getLogger(ConnectionGuard.class);
    private static final long TICK_MILLIS = 250;

    /** When to ask again for what there is no room for at this moment. */
    private static final Duration PAUSE = Duration.ofSeconds(1);

    /** The part of the bound on calls from which connections get shares. */
    private static final int FAIR_PART = 4;

    /** The part of the calls that may still be opened which one connection may have open. */
    private static final int SHARE_PART = 8;

    /** The part of the bound on calls that old ones without a request may take when connections get shares. */
    private static final int STALE_PART = 8;

    /** The calls that a connection may have open in any case. */
    private static final int MIN_SHARE = 16;

    private static final long LOG_INTERVAL_NANOS = 1_000_000_000;

    private final TransportMemory memory;
    private final Executor workers;
    private final ConnectionLimiter limiter;
    private final Refusals refusals;
    private final long maxCalls;
    private final LongSupplier nanoTime;
    private final UnreadResponses unread;
    private final AtomicLong calls = new AtomicLong();

    /** Connections that have not got through the handshakes, by their addresses, which channels keep. */
    private final Map<SocketAddress, Channel> arriving = Collections.synchronizedMap(new IdentityHashMap<>());

    private final Map<EventLoop, Loop> loops = new ConcurrentHashMap<>();
    private final AtomicLong disconnects = new AtomicLong();
    private final AtomicLong nextLog;

    ConnectionGuard(
            TransportMemory memory,
            Executor workers,
            ConnectionLimiter limiter,
            long maxCalls,
            UnreadResponses unread,
            Refusals refusals,
            LongSupplier nanoTime) {
        this.refusals = refusals;
        this.workers = workers;
        this.memory = memory;
        this.limiter = limiter;
        this.maxCalls = maxCalls;
        this.unread = unread;
        this.nanoTime = nanoTime;
        this.nextLog = new AtomicLong(nanoTime.getAsLong());
    }

    /** The connections of one event loop, which it is confined to. */
    final class Loop {
        private final EventLoop eventLoop;
        private final Set<GuardedConnection> connections = new LinkedHashSet<>();
        private final Tally stale = new Tally();
        private final Tally incomplete = new Tally();
        private boolean ticking;

        private Loop(EventLoop eventLoop) {
            this.eventLoop = eventLoop;
        }

        private void add(GuardedConnection connection) {
            connections.add(connection);
        }

        void remove(GuardedConnection connection) {
            connections.remove(connection);
        }

        /** Looks at the connections from time to time, from now on until none of them has calls. */
        void wake() {
            if (!ticking) {
                ticking = true;
                var _ = eventLoop.schedule(this::tick, TICK_MILLIS, TimeUnit.MILLISECONDS);
            }
        }

        private void tick() {
            ticking = false;
            boolean isActive = false;
            for (GuardedConnection connection : List.copyOf(connections)) {
                if (connection.isActive()) {
                    connection.look();
                    isActive |= connection.isActive();
                }
            }
            if (isShared()) {
                stale.take(connections, GuardedConnection::stale);
                incomplete.take(connections, GuardedConnection::incomplete);
                disconnectForRoom(Loop::stale, GuardedConnection::stale, maxCalls / STALE_PART);
                if (isFull()) {
                    disconnectForRoom(Loop::incomplete, GuardedConnection::incomplete, maxCalls / 2);
                }
            } else {
                stale.clear();
                incomplete.clear();
            }
            if (isActive) {
                wake();
            }
        }

        private Tally stale() {
            return stale;
        }

        private Tally incomplete() {
            return incomplete;
        }

        /**
         * Disconnects the clients that keep most calls open without a request, if such calls of all event loops together take
         * too much room. On another event loop there may be clients that keep far more; it disconnects those.
         *
         * @param tally has what event loops counted
         * @param count counts the calls of a connection
         * @param max how many there may be
         */
        private void disconnectForRoom(Function<Loop, Tally> tally, ToIntFunction<GuardedConnection> count, long max) {
            long excess = -max;
            int most = 0;
            for (Loop each : loops.values()) {
                excess += tally.apply(each).sum;
                most = Math.max(most, tally.apply(each).most);
            }
            if (excess <= 0) {
                return;
            }
            List<GuardedConnection> largestFirst = new ArrayList<>(connections);
            largestFirst.sort(Comparator.comparingInt(count).reversed());
            for (GuardedConnection connection : largestFirst) {
                int own = count.applyAsInt(connection);
                if (excess <= 0 || own <= most / 2) {
                    return;
                }
                excess -= own;
                connection.disconnect("too many calls without a request");
            }
        }
    }

    /** Counts calls of one event loop, which writes it, for the others to read. */
    private static final class Tally {
        private volatile long sum;

        /** What the connection has that has most. */
        private volatile int most;

        private void take(Set<GuardedConnection> connections, ToIntFunction<GuardedConnection> count) {
            long newSum = 0;
            int newMost = 0;
            for (GuardedConnection connection : connections) {
                int own = count.applyAsInt(connection);
                newSum += own;
                newMost = Math.max(newMost, own);
            }
            sum = newSum;
            most = newMost;
        }

        private void clear() {
            sum = 0;
            most = 0;
        }
    }

    /** Counts a connection that was accepted. Returns false if it is one too many, and not counted. */
    boolean accept(Channel channel) {
        if (!(channel.remoteAddress() instanceof InetSocketAddress remote)) {
            return false; // the client has gone
        }
        InetAddress client = remote.getAddress();
        if (!limiter.tryOpen(client)) {
            return false;
        }
        arriving.put(remote, channel);
        var _ = channel.closeFuture().addListener(_ -> {
            arriving.remove(remote);
            limiter.closed(client);
        });
        return true;
    }

    @Override
    public Attributes transportReady(Attributes attributes) {
        @Nullable SocketAddress remote = attributes.get(Grpc.TRANSPORT_ATTR_REMOTE_ADDR);
        @Nullable Channel channel = remote == null ? null : arriving.remove(remote);
        @Nullable
        Http2ConnectionHandler http2 =
                channel == null ? null : channel.pipeline().get(Http2ConnectionHandler.class);
        if (channel == null || http2 == null) {
            LOG.debug("connection of {} is not watched", remote);
            return attributes;
        }
        Loop loop = loops.computeIfAbsent(channel.eventLoop(), Loop::new);
        GuardedConnection connection = new GuardedConnection(this, loop, channel, http2);
        loop.add(connection);
        connection.begin();
        return attributes.toBuilder().set(GuardedConnection.KEY, connection).build();
    }

    void addCalls(long count) {
        calls.addAndGet(count);
    }

    /** Says whether no further call is let in. */
    boolean isFull() {
        return calls.get() >= maxCalls;
    }

    /** Says whether so many calls are open that connections get shares. */
    private boolean isShared() {
        return calls.get() >= maxCalls / FAIR_PART;
    }

    /**
     * Says whether no further call of a connection is let in. From a quarter of the bound on, no connection may have more
     * than a part of what is left, so that there is always room for clients with few calls: the share of each shrinks as
     * calls are opened, but not by connections that have no calls.
     *
     * @param open the calls of the connection that are open
     */
    boolean isFullFor(int open) {
        long all = calls.get();
        if (all < maxCalls / FAIR_PART) {
            return false;
        }
        return all >= maxCalls || open > Math.max(MIN_SHARE, (maxCalls - all) / SHARE_PART);
    }

    InferenceException refusal() {
        return InferenceException.overloaded("too many calls are open (expected: at most " + maxCalls + ")", PAUSE);
    }

    InferenceException unreadRefusal() {
        return InferenceException.overloaded(
                "too many responses wait on this connection (expected: a client that reads them)", PAUSE);
    }

    /** Counts and logs the refusal of a call that nothing else sees. */
    void refused(InferenceException error) {
        refusals.count(RequestProtocol.GRPC, error.refusalCause());
        RequestFailures.log("", "", error);
    }

    /** Logs that a connection was closed, once a second at most. */
    void disconnected(SocketAddress client, String reason) {
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

    Executor workers() {
        return workers;
    }

    TransportMemory memory() {
        return memory;
    }

    UnreadResponses unread() {
        return unread;
    }

    LongSupplier nanoTime() {
        return nanoTime;
    }

    /** Returns how many calls are open, as far as connections have told. */
    long openCalls() {
        return calls.get();
    }
}
