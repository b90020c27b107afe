package dev.nereid.http.connection;

import dev.nereid.api.RefusalCause;
import dev.nereid.http.body.DiscardedBody;
import dev.nereid.http.body.HttpErrors;
import dev.nereid.http.body.RequestLimits;
import dev.nereid.http.body.TrailingHeaderSpace;
import io.netty.channel.Channel;
import io.netty.channel.ChannelConfig;
import io.netty.channel.EventLoop;
import io.netty.channel.WriteBufferWaterMark;
import io.netty.handler.codec.TooLongFrameException;
import io.netty.util.concurrent.ScheduledFuture;
import io.vertx.core.Future;
import io.vertx.core.Handler;
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
import java.net.HttpURLConnection;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
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
 * HTTP server of one event loop, with limits on connections, memory and time. Confined to its event loop, but for the
 * methods that say otherwise.
 *
 * <p>It checks all connections once a second, or more often if a timeout is short, so that no request sets a timer.
 *
 * <p>{@link ConnectionDrain} closes them, {@link IdleConnections} selects those to evict.
 */
public final class EventLoopServer implements ConnectionAcceptor.Listener, ServerConnection.Port {
    private static final Logger LOG = LoggerFactory.getLogger(EventLoopServer.class);
    private static final WriteBufferWaterMark UNSENT =
            new WriteBufferWaterMark(ServerConnection.MAX_UNSENT_BYTES / 2, ServerConnection.MAX_UNSENT_BYTES);
    private static final long MAX_TICK_NANOS = TimeUnit.SECONDS.toNanos(1);
    private static final long MIN_TICK_NANOS = TimeUnit.MILLISECONDS.toNanos(20);
    private static final int BACKLOG = 1024;

    /** How long a client may read nothing while unread responses exceed their share of memory. */
    private static final long STALL_NANOS = TimeUnit.SECONDS.toNanos(5);

    /** The interval in which the read rate of clients is measured. */
    private static final long MEASURE_NANOS = TimeUnit.MILLISECONDS.toNanos(900);

    /** The maximum time to drain a client's long texts. It applies while there is no memory for others. */
    private static final long MAX_READ_NANOS = TimeUnit.SECONDS.toNanos(60);

    /** The maximum to count of the buffers of one connection. The rest is tensors, which have a separate limit. */
    private static final long MAX_COUNTED_BYTES = 256 << 10;

    /** Receives the requests that the server refuses before any handler. */
    @FunctionalInterface
    public interface RefusalListener {
        /** Ignores refused requests. */
        RefusalListener NONE = (path, cause, status) -> {};

        /** A request was refused; its path is empty if unknown. */
        void refused(String path, RefusalCause cause, int status);
    }

    private final ContextInternal context;
    private final EventLoop loop;
    private final HttpConnectionOptions connectionOptions;
    private final LongSupplier clock;
    private final ConnectionAcceptor acceptor;
    private final RefusalListener refusals;
    private final HttpServer http;
    private final Map<HttpConnection, ServerConnection> connections = new HashMap<>();

    private final IdleConnections idle;
    private final ConnectionDrain drain;
    private @Nullable ScheduledFuture<?> ticks;
    private @Nullable HeaderBufferAllocator allocator;
    private boolean keepsTrailingSpace;
    private long now;
    private long lastTick;
    private long lastMeasured;
    /** The counted bytes of responses that clients do not read. */
    private long unreadBytes;

    /**
     * Creates the server, which does not listen yet.
     *
     * @param acceptor the acceptor of connections, shared by the event loops of one port
     * @param refusals receives the requests that never reach the handler
     * @param clock the time in nanoseconds, from any origin
     */
    public EventLoopServer(
            ContextInternal context,
            HttpServerOptions options,
            HttpConnectionOptions connectionOptions,
            ConnectionAcceptor acceptor,
            Handler<HttpServerRequest> requests,
            RefusalListener refusals,
            LongSupplier clock) {
        this.context = context;
        this.loop = context.nettyEventLoop();
        this.connectionOptions = connectionOptions;
        this.acceptor = acceptor;
        this.refusals = refusals;
        this.clock = clock;
        now = clock.getAsLong();
        lastTick = now;
        lastMeasured = now;
        idle = new IdleConnections(connections.values(), clock);
        drain = new ConnectionDrain(context, connections.values(), acceptor, clock);
        options.setAcceptBacklog(BACKLOG)
                .setMaxChunkSize(RequestLimits.MAX_CHUNK_BYTES)
                .setMaxInitialLineLength(RequestLimits.MAX_REQUEST_LINE_BYTES)
                .setMaxHeaderSize(RequestLimits.MAX_HEADER_BYTES)
                .setHttp2ClearTextEnabled(false)
                // There are no web sockets here, and their handshake handler costs every request.
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
                    if (drain.isClosing() && isAcceptedDuringDrain(request)) {
                        refuseExiting(request);
                    } else {
                        requests.handle(request);
                    }
                })
                .invalidRequestHandler(this::refuseInvalid);
    }

    public Future<HttpServer> listen(SocketAddress address) {
        return ((TcpHttpServer) http).listen(context, address).onSuccess(listening -> {
            acceptor.add(this);
            long tick = tickNanos(connectionOptions.timeouts());
            ticks = loop.scheduleAtFixedRate(this::tick, tick, tick, TimeUnit.NANOSECONDS);
        });
    }

    /** Keeps the blanks at the end of header values. To be called before {@link #listen}. */
    public void keepTrailingSpace() {
        keepsTrailingSpace = true;
    }

    /** Returns the listening port. May be called on any thread. */
    public int port() {
        return http.actualPort();
    }

    /** Uses other certificates for connections that are accepted from now on. May be called on any thread. */
    public Future<Boolean> updateSslOptions(ServerSSLOptions encryption) {
        return http.updateSSLOptions(encryption);
    }

    /** Returns the time of the last clock reading. It is no more than a second ago. */
    @Override
    public long now() {
        if (drain.isClosing()) {
            now = clock.getAsLong();
        }
        return now;
    }

    @Override
    public boolean isClosing() {
        return drain.isClosing();
    }

    @Override
    public boolean isDrained() {
        return drain.isDrained();
    }

    /**
     * Closes the connections in phases, as {@link ConnectionDrain} does. May be called on any thread, once.
     *
     * @param window how long each response announces the end before idle connections are closed
     * @param timeout how long requests may take until all connections are closed
     * @return completed when no connection is left that was there before the end of the window
     */
    public Future<Void> drain(Duration window, Duration timeout) {
        return drain.start(window, timeout);
    }

    /**
     * Closes the remaining connections after their last responses, and then the server. To be called once the listening
     * socket is closed. May be called on any thread.
     *
     * @param lateTimeout how long responses may take on connections that were accepted after the end of the window
     * @return completed when all is closed
     */
    public Future<Void> closeAfterDrain(Duration lateTimeout) {
        return drain.close(lateTimeout).compose(closed -> {
            if (ticks != null) {
                ticks.cancel(false);
            }
            return http.close();
        });
    }

    private void connected(HttpConnection connection) {
        Channel channel = ((ConnectionBase) connection).channel();
        acceptor.connected(channel);
        ChannelConfig transport = channel.config();
        if (allocator == null) {
            allocator = new HeaderBufferAllocator(transport.getAllocator());
        }
        transport.setAllocator(allocator);
        transport.setWriteBufferWaterMark(UNSENT);
        now = clock.getAsLong();
        drain.connected(now);
        TrailingHeaderSpace blanks = keepsTrailingSpace ? TrailingHeaderSpace.begin(channel) : null;
        connections.put(
                connection,
                new ServerConnection(this, channel, connectionOptions.timeouts(), blanks, drain.isDrained()));
        connection.closeHandler(gone -> {
            connections.remove(connection);
            drain.disconnected();
        });
    }

    private boolean isAcceptedDuringDrain(HttpServerRequest request) {
        ServerConnection connection = connections.get(request.connection());
        return connection == null || connection.isAcceptedDuringDrain();
    }

    private void refuseExiting(HttpServerRequest request) {
        refusals.refused(String.valueOf(request.path()), RefusalCause.NOT_READY, HttpURLConnection.HTTP_UNAVAILABLE);
        request.response().putHeader(HttpHeaders.CONNECTION, HttpHeaders.CLOSE);
        HttpErrors.sendExiting(request.response());
        if (request.isEnded()) {
            request.connection().close();
        } else {
            DiscardedBody.discard(request);
        }
    }

    /** Responds to malformed HTTP, and closes the connection. The start of the next request is unknown. */
    private void refuseInvalid(HttpServerRequest request) {
        Throwable problem = request.decoderResult().cause();
        HttpErrors.sendInvalid(request.response(), problem, request.getHeader(HttpHeaders.CONTENT_LENGTH));
        RefusalCause cause = problem instanceof TooLongFrameException ? RefusalCause.TOO_LARGE : RefusalCause.MALFORMED;
        refusals.refused(
                String.valueOf(request.path()), cause, request.response().getStatusCode());
        request.connection().close();
    }

    @Override
    public void countRefusal(int status) {
        refusals.refused("", RefusalCause.MALFORMED, status);
    }

    // Timeouts.

    /** Returns the interval of connection checks. It is short enough for the shortest timeout, and not much shorter. */
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
                if (connection.isEvictable() && connection.idleSince() - oldest < 0) {
                    oldest = connection.idleSince();
                }
                if (connection.stalledNanos(now) > STALL_NANOS) {
                    waitingBytes += countedBytes(connection);
                }
            }
            idle.setOldestSince(oldest);
            limitUnread(waitingBytes);
            if (now - lastMeasured >= MEASURE_NANOS) {
                measureReadRates(now - lastMeasured);
                lastMeasured = now;
            }
        } catch (RuntimeException | Error e) { // an exception would end the checks for good, without a word
            LOG.atError().setCause(e).log("connections not checked"); // which reports a fatal error
        }
    }

    private static long countedBytes(ServerConnection connection) {
        return Math.min(connection.pendingBytes(), MAX_COUNTED_BYTES) + connection.queuedBytes();
    }

    /** Closes the connections with the slowest readers. Does so if their long texts leave no memory for others. */
    private void measureReadRates(long elapsed) {
        connections.values().forEach(connection -> connection.measureReadRate(elapsed));
        long shortage = acceptor.jsonMemory().shortage();
        if (shortage > 0) {
            closeSlowestReaders(shortage);
        }
    }

    private void closeSlowestReaders(long shortage) {
        List<ServerConnection> slow = connections.values().stream()
                .filter(connection -> connection.drainNanos() > MAX_READ_NANOS)
                .sorted(Comparator.comparingLong(ServerConnection::drainNanos).reversed())
                .toList();
        long left = shortage;
        int closed = 0;
        for (; closed < slow.size() && left > 0; closed++) {
            left -= slow.get(closed).queuedBytes();
            slow.get(closed).abort();
        }
        if (closed > 0) {
            LOG.atWarn().addKeyValue("connections", closed).log("connections closed, clients read too slowly");
        }
    }

    private void limitUnread(long waitingBytes) {
        UnreadResponseBytes unread = acceptor.unreadBytes();
        long allowed = unread.replace(unreadBytes, waitingBytes);
        unreadBytes = waitingBytes;
        if (allowed < waitingBytes) {
            unreadBytes = closeStalled(waitingBytes, allowed);
            unread.replace(waitingBytes, unreadBytes);
        }
    }

    /** Closes stalled connections, the longest stalled first, until the others fit; returns the bytes of the others. */
    private long closeStalled(long taken, long allowed) {
        long left = taken;
        List<ServerConnection> stalled = connections.values().stream()
                .filter(connection -> connection.stalledNanos(now) > STALL_NANOS)
                .sorted(Comparator.comparingLong((ServerConnection connection) -> connection.stalledNanos(now))
                        .reversed())
                .toList();
        int closed = 0;
        for (ServerConnection connection : stalled) {
            if (left <= allowed) {
                break;
            }
            left -= countedBytes(connection);
            connection.abort();
            closed++;
        }
        if (closed > 0) {
            LOG.atWarn().addKeyValue("connections", closed).log("connections closed, clients do not read");
        }
        return left;
    }

    // Eviction.

    /** Runs a task on the event loop, unless that has ended. May be called on any thread. */
    @Override
    public boolean execute(Runnable task) {
        try {
            loop.execute(task);
            return true;
        } catch (RejectedExecutionException e) {
            return false;
        }
    }

    /** Returns the connections that may be evicted. May be called on any thread. */
    @Override
    public IdleConnections idle() {
        return idle;
    }
}
