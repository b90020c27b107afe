package dev.nereid.http;

import io.netty.channel.Channel;
import io.netty.channel.ChannelConfig;
import io.netty.channel.EventLoop;
import io.netty.channel.WriteBufferWaterMark;
import io.netty.util.concurrent.ScheduledFuture;
import io.vertx.core.Future;
import io.vertx.core.Handler;
import io.vertx.core.Promise;
import io.vertx.core.http.HttpConnection;
import io.vertx.core.http.HttpHeaders;
import io.vertx.core.http.HttpServer;
import io.vertx.core.http.HttpServerConfig;
import io.vertx.core.http.HttpServerOptions;
import io.vertx.core.http.HttpServerRequest;
import io.vertx.core.http.impl.tcp.TcpHttpServer;
import io.vertx.core.internal.ContextInternal;
import io.vertx.core.net.ServerSSLOptions;
import io.vertx.core.net.SocketAddress;
import io.vertx.core.net.impl.ConnectionBase;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The connections of one event loop to a port of HTTP/1.1, bounded in number, memory and time. Confined to its event loop,
 * but for the methods that say otherwise.
 *
 * <p>It looks at all connections once a second, or more often if a time-out is short, so that no request sets a timer.
 *
 * <p>It closes in phases. In the drain window it goes on as before, but each response announces the end of its connection.
 * Then idle connections are closed, others after their response; requests over connections that are made from then on are
 * told that the server exits.
 */
final class HttpPort {
    /** Large bodies come in pieces of this size; every piece has its price. */
    static final int PIECE_SIZE = 64 << 10;

    /** While so much waits for a client of one connection, no more responses are begun. */
    static final int MAX_UNSENT_BYTES = 32 << 10;

    private static final Logger log = LoggerFactory.getLogger(HttpPort.class);
    private static final WriteBufferWaterMark UNSENT = new WriteBufferWaterMark(MAX_UNSENT_BYTES / 2, MAX_UNSENT_BYTES);
    private static final long MAX_TICK_NANOS = TimeUnit.SECONDS.toNanos(1);
    private static final long MIN_TICK_NANOS = TimeUnit.MILLISECONDS.toNanos(20);
    private static final int BACKLOG = 1024;

    /** How long no connection may come before a port counts as deserted whose connections were closed one by one. */
    private static final long QUIET_NANOS = TimeUnit.MILLISECONDS.toNanos(200);

    /** How long a connection that has just been made or answered is left to its client. */
    private static final long LAST_MOMENT_NANOS = TimeUnit.MILLISECONDS.toNanos(400);

    private static final long LEAVE_CHECK_NANOS = TimeUnit.MILLISECONDS.toNanos(10);

    /** How many idle connections are found by one search. */
    private static final int IDLE_CANDIDATES = 64;

    /** How soon idle connections are searched for again if there were none. */
    private static final long IDLE_SEARCH_NANOS = TimeUnit.MILLISECONDS.toNanos(50);

    /** How long a client may read nothing while what waits for such clients takes more than its share of memory. */
    private static final long STALL_NANOS = TimeUnit.SECONDS.toNanos(5);

    /** More of one connection is tensors, which have a bound of their own. */
    private static final long MAX_COUNTED_BYTES = 256 << 10;

    /** The share of the heap that responses may take which nobody reads. */
    private static final int HEAP_DIVISOR = 8;

    private static final long MIN_WAITING_BYTES = 16 << 20;

    private final ContextInternal context;
    private final EventLoop loop;
    private final HttpConnections bounds;
    private final LongSupplier clock;
    private final ConnectionAcceptor acceptor;
    private final HttpServer http;
    private final Map<HttpConnection, ServerConnection> connections = new HashMap<>();

    /** Those that are closed when there is no room for others. */
    private final Deque<ServerConnection> idle = new ArrayDeque<>();

    /** When they were found. */
    private long idleFoundAt;

    private final Promise<Void> drained = Promise.promise();
    private final Promise<Void> deserted = Promise.promise();
    private final long maxWaitingBytes =
            Math.max(MIN_WAITING_BYTES, Runtime.getRuntime().maxMemory() / HEAP_DIVISOR);
    private @Nullable ScheduledFuture<?> ticks;
    private @Nullable RoomyAllocator allocator;
    private long now;
    private long lastConnected;
    private long lastTick;
    private boolean isClosing;
    private boolean isDrained;
    private volatile long idleSince;
    private volatile long searchAgainAt;

    /**
     * Prepares a port.
     *
     * @param context the event loop
     * @param options how HTTP is spoken
     * @param bounds the bounds on connections
     * @param acceptor what accepts them, shared by the event loops of one port
     * @param requests the handler of requests
     * @param clock the time in nanoseconds, from any origin
     */
    HttpPort(
            ContextInternal context,
            HttpServerOptions options,
            HttpConnections bounds,
            ConnectionAcceptor acceptor,
            Handler<HttpServerRequest> requests,
            LongSupplier clock) {
        this.context = context;
        this.loop = context.nettyEventLoop();
        this.bounds = bounds;
        this.acceptor = acceptor;
        this.clock = clock;
        now = clock.getAsLong();
        lastTick = now;
        idleSince = now;
        searchAgainAt = now;
        options.setAcceptBacklog(BACKLOG)
                .setMaxChunkSize(PIECE_SIZE)
                .setMaxInitialLineLength(RequestLimits.LONGEST_REQUEST_LINE)
                .setMaxHeaderSize(RequestLimits.LARGEST_HEADERS)
                .setHttp2ClearTextEnabled(false)
                // Nobody speaks web sockets here, and what waits for their beginning costs every request.
                .setPerFrameWebSocketCompressionSupported(false)
                .setPerMessageWebSocketCompressionSupported(false);
        ServerSSLOptions encryption = options.isSsl() ? options.getSslOptions() : null;
        http = new TcpHttpServer(
                        LimitedTransport.of(context.owner(), acceptor),
                        new HttpServerConfig(options),
                        encryption == null ? null : encryption.copy(),
                        options.getSslEngineOptions(),
                        null,
                        false)
                .connectionHandler(this::connected)
                .requestHandler(request -> {
                    if (isClosing && isLate(request)) {
                        sendAway(request);
                    } else {
                        requests.handle(request);
                    }
                })
                .invalidRequestHandler(HttpPort::refuse);
    }

    /** Begins to listen. */
    Future<HttpServer> listen(SocketAddress address) {
        return ((TcpHttpServer) http).listen(context, address).onSuccess(listening -> {
            acceptor.add(this);
            long tick = tickNanos(bounds.timeouts());
            ticks = loop.scheduleAtFixedRate(this::tick, tick, tick, TimeUnit.NANOSECONDS);
        });
    }

    /** Returns the port that is listened on. May be called on any thread. */
    int port() {
        return http.actualPort();
    }

    /** Encrypts connections that are made from now on with other certificates. May be called on any thread. */
    Future<Boolean> renew(ServerSSLOptions encryption) {
        return http.updateSSLOptions(encryption);
    }

    /** Closes a connection at once; responses that wait are lost. */
    static void abort(HttpConnection connection) {
        Channel channel = ((ConnectionBase) connection).channel();
        channel.unsafe().close(channel.voidPromise());
    }

    /** Returns the time of the last look at the clock, which is no more than a second ago. */
    long now() {
        if (isClosing) {
            now = clock.getAsLong();
        }
        return now;
    }

    /** Says whether responses announce the end of their connections. */
    boolean isClosing() {
        return isClosing;
    }

    /** Says whether connections are closed as soon as they have no request. */
    boolean isDrained() {
        return isDrained;
    }

    /**
     * Closes the connections in phases, as the class says. May be called on any thread, once.
     *
     * @param window how long each response announces the end before idle connections are closed
     * @param timeout how long requests may take until all connections are closed
     * @return completed when no connection is left that was there before the end of the window
     */
    Future<Void> drain(Duration window, Duration timeout) {
        context.runOnContext(begun -> {
            isClosing = true;
            if (window.isZero()) {
                endWindow();
            } else {
                after(window.toNanos(), this::endWindow);
            }
            after(timeout.toNanos(), this::abortAll);
            if (connections.isEmpty()) {
                drained.tryComplete();
            }
        });
        return drained.future();
    }

    /**
     * Lets the connections that are left have their last responses, and closes everything. To be called once the socket
     * that listens is closed. May be called on any thread.
     *
     * @param patience how long those responses may take
     * @return completed when all is closed
     */
    Future<Void> leave(Duration patience) {
        context.runOnContext(begun -> {
            endWindow();
            if (patience.isZero()) {
                abortAll();
            } else {
                after(patience.toNanos(), this::abortAll);
            }
            awaitDeserted(clock.getAsLong() + patience.toNanos());
        });
        return deserted.future().compose(gone -> {
            if (ticks != null) {
                ticks.cancel(false);
            }
            return http.close();
        });
    }

    @SuppressWarnings("FutureReturnValueIgnored") // the task tells of its outcome itself
    private void after(long nanos, Runnable task) {
        loop.schedule(task, nanos, TimeUnit.NANOSECONDS);
    }

    private void endWindow() {
        isDrained = true;
        closeIdle();
        checkDrained();
    }

    /**
     * Closes the connections without a request, those with a part of a header too: none of that was a request yet. The
     * first request of a new connection, or one that follows a response, may be on its way for a moment.
     */
    private void closeIdle() {
        boolean isLeft = false;
        for (ServerConnection connection : List.copyOf(connections.values())) {
            if (connection.isAnswered()) {
                if (now() - connection.idleSince() >= LAST_MOMENT_NANOS) {
                    connection.close();
                } else {
                    isLeft = true;
                }
            }
        }
        if (isLeft) {
            after(LAST_MOMENT_NANOS / 8, this::closeIdle);
        }
    }

    private void abortAll() {
        List.copyOf(connections.values()).forEach(ServerConnection::abort);
    }

    private void checkDrained() {
        if (!connections.values().stream().allMatch(ServerConnection::isLate)) {
            return;
        }
        if (isDrained) {
            drained.tryComplete();
        } else {
            // Clients whose connection was closed may be about to connect again.
            after(QUIET_NANOS, this::endIfQuiet);
        }
    }

    private void endIfQuiet() {
        if (connections.isEmpty() && clock.getAsLong() - lastConnected >= QUIET_NANOS) {
            drained.tryComplete();
        }
    }

    /** Waits for all connections that were accepted, some of which may not have got here yet. */
    private void awaitDeserted(long until) {
        if (connections.isEmpty() && (acceptor.open() == 0 || clock.getAsLong() - until > 0)) {
            deserted.tryComplete();
        } else {
            after(LEAVE_CHECK_NANOS, () -> awaitDeserted(until));
        }
    }

    private void connected(HttpConnection connection) {
        ChannelConfig transport = ((ConnectionBase) connection).channel().config();
        if (allocator == null) {
            allocator = new RoomyAllocator(transport.getAllocator());
        }
        transport.setAllocator(allocator);
        transport.setMessageSizeEstimator(BufferedBytes.INSTANCE);
        transport.setWriteBufferWaterMark(UNSENT);
        now = clock.getAsLong();
        lastConnected = now;
        connections.put(
                connection,
                new ServerConnection(this, ((ConnectionBase) connection).channel(), bounds.timeouts(), isDrained));
        connection.closeHandler(gone -> {
            connections.remove(connection);
            if (isClosing) {
                checkDrained();
            }
        });
    }

    private boolean isLate(HttpServerRequest request) {
        ServerConnection connection = connections.get(request.connection());
        return connection == null || connection.isLate();
    }

    private static void sendAway(HttpServerRequest request) {
        request.response().putHeader(HttpHeaders.CONNECTION, HttpHeaders.CLOSE);
        HttpErrors.sendExiting(request.response());
        if (request.isEnded()) {
            request.connection().close();
        } else {
            UnwantedBody.discard(request);
            request.endHandler(end -> request.connection().close());
        }
    }

    /** Answers what is no request of HTTP, and closes the connection: nobody knows where the next request begins. */
    private static void refuse(HttpServerRequest request) {
        HttpErrors.sendInvalid(
                request.response(), request.decoderResult().cause(), request.getHeader(HttpHeaders.CONTENT_LENGTH));
        request.connection().close();
    }

    // Time.

    /** Returns how often connections are looked at: often enough for the shortest time-out, and not much more often. */
    static long tickNanos(HttpTimeouts timeouts) {
        long shortest = Stream.of(timeouts.header(), timeouts.bodyGrace(), timeouts.idle(), timeouts.responseStall())
                .filter(time -> !time.isZero())
                .mapToLong(Duration::toNanos)
                .min()
                .orElse(MAX_TICK_NANOS);
        return Math.clamp(shortest / 4, MIN_TICK_NANOS, MAX_TICK_NANOS);
    }

    private void tick() {
        try {
            now = clock.getAsLong();
            long elapsed = now - lastTick;
            lastTick = now;
            long oldest = now;
            long waitingBytes = 0;
            for (ServerConnection connection : new ArrayList<>(connections.values())) {
                connection.check(now, elapsed);
                if (connection.isExpendable() && connection.idleSince() - oldest < 0) {
                    oldest = connection.idleSince();
                }
                if (connection.stalledNanos(now) > STALL_NANOS) {
                    waitingBytes += counted(connection);
                }
            }
            idleSince = oldest;
            if (waitingBytes > maxWaitingBytes) {
                freeMemory(waitingBytes);
            }
        } catch (RuntimeException e) {
            log.atError().setCause(e).log("connections not checked");
        }
    }

    private static long counted(ServerConnection connection) {
        return Math.min(connection.waitingBytes(), MAX_COUNTED_BYTES);
    }

    /** Closes connections whose clients have not read for the longest time, until the others take half the bound. */
    private void freeMemory(long taken) {
        long left = taken;
        List<ServerConnection> stalled = connections.values().stream()
                .filter(connection -> connection.stalledNanos(now) > STALL_NANOS)
                .sorted(Comparator.comparingLong((ServerConnection connection) -> connection.stalledNanos(now))
                        .reversed())
                .toList();
        int closed = 0;
        for (ServerConnection connection : stalled) {
            if (left <= maxWaitingBytes / 2) {
                break;
            }
            left -= counted(connection);
            connection.abort();
            closed++;
        }
        log.atWarn().addKeyValue("connections", closed).log("closed, their clients do not read");
    }

    // Room for others.

    /** Runs something on the event loop, unless that has ended. May be called on any thread. */
    boolean execute(Runnable task) {
        try {
            loop.execute(task);
            return true;
        } catch (RejectedExecutionException e) {
            return false;
        }
    }

    /** Says whether there may be an idle connection. May be called on any thread. */
    boolean mayHaveIdle() {
        return clock.getAsLong() - searchAgainAt >= 0;
    }

    /** Returns about when the connection that has been idle for the longest time began to be. On any thread. */
    long idleSince() {
        return idleSince;
    }

    /** Closes the connection that has been idle for the longest time, at once, if there is one. */
    void closeLongestIdle() {
        ServerConnection found = nextIdle();
        if (found == null) {
            findIdle();
            found = nextIdle();
        }
        if (found == null && acceptor.open() <= connections.size()) {
            searchAgainAt = clock.getAsLong() + IDLE_SEARCH_NANOS;
        } else if (found != null) {
            found.abort();
        }
    }

    private @Nullable ServerConnection nextIdle() {
        for (ServerConnection next = idle.poll(); next != null; next = idle.poll()) {
            boolean wasUsed = next.idleSince() - idleFoundAt > 0;
            if (next.isExpendable() && next.isOpen() && !wasUsed) {
                idleSince = next.idleSince();
                return next;
            }
        }
        return null;
    }

    /** Connections that never served a request go first: they are no loss to their clients. */
    private void findIdle() {
        long foundAt = clock.getAsLong();
        idleFoundAt = foundAt;
        connections.values().stream()
                .filter(ServerConnection::isExpendable)
                .sorted(Comparator.comparing(ServerConnection::hasAnswered)
                        .thenComparingLong(connection -> connection.idleSince() - foundAt))
                .limit(IDLE_CANDIDATES)
                .forEach(idle::add);
    }
}
