package dev.nereid.http.connection;

import dev.nereid.api.frontend.ConnectionLimiter;
import dev.nereid.http.json.JsonMemoryLimiter;
import io.netty.channel.AdaptiveRecvByteBufAllocator;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandler.Sharable;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.RecvByteBufAllocator;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Counts the connections that a listening socket accepts, and closes those beyond the limit. They are counted before
 * they have an event loop or memory. Confined to the accepting thread, but for the methods that say otherwise.
 *
 * <p>At the limit a connection is evicted for each new one: first one with a slow TLS handshake, then the one that has
 * been idle for the longest time, then the one with the oldest handshake. One that was in use until a short time ago goes
 * last, after other connections had time to end. Without any of these the new connection is closed at once. When the process has no file descriptor for another connection, nothing is accepted for a second.
 */
public @Sharable // by the listeners of one port, which have one socket
final class ConnectionAcceptor extends ChannelInboundHandlerAdapter {
    private static final Logger LOG = LoggerFactory.getLogger(ConnectionAcceptor.class);

    /** The maximum number of connections that wait for an eviction. At the maximum no more are accepted. */
    private static final int MAX_PENDING = 64;

    /** How long a TLS handshake may last before its connection is evicted before idle ones. */
    private static final long SLOW_HANDSHAKE_NANOS = TimeUnit.SECONDS.toNanos(1);

    /** The part of the limit that is kept free of idle connections. It is kept for this port or another. */
    private static final int RESERVE_DIVISOR = 16;

    /**
     * How long a connection that has served a request must have been idle before it is evicted for the reserve, or at once
     * for a new connection. The connections that fill the limit may be those of another port. When it became idle is known
     * to within a second.
     */
    private static final long MIN_IDLE_NANOS = TimeUnit.SECONDS.toNanos(2);

    /** How long a new connection waits for another one to end, before the next attempt to evict one. */
    private static final long RETRY_MILLIS = 50;

    private static final long PAUSE_MILLIS = 1_000;
    private static final long CLOSE_SECONDS = 5;

    /** How long closing waits for connections that the operating system has already accepted. */
    private static final long QUIET_MILLIS = 20;

    /** The number of connections that the transport accepts in a row. */
    private static final int MAX_ACCEPTED_AT_ONCE = 16;

    /**
     * How often the transport reads of a connection, or writes to it, before it turns to the others of the event loop. With
     * Netty's 16, a response of 100 MB to a fast client holds up all others for half a second, as 64 large bodies do.
     */
    private static final int MAX_OPERATIONS_AT_ONCE = 2;

    /** An event loop that serves accepted connections. */
    interface Listener {
        /** Returns its idle connections. May be called on any thread. */
        IdleConnections idle();

        /** Runs a task on the event loop; returns {@code false} if that has ended. May be called on any thread. */
        boolean execute(Runnable task);
    }

    private final RecvByteBufAllocator readBuffers =
            new AdaptiveRecvByteBufAllocator().maxMessagesPerRead(MAX_OPERATIONS_AT_ONCE);
    private final ConnectionLimiter limiter;
    private final List<Listener> servers = new CopyOnWriteArrayList<>();
    private volatile @Nullable Channel listening;
    private final AtomicInteger open = new AtomicInteger();
    private final AtomicLong refused = new AtomicLong();
    private final UnreadResponseBytes unreadBytes = new UnreadResponseBytes();
    private final JsonMemoryLimiter jsonMemory;
    private final boolean isEncrypted;
    private final Handshakes handshakes;
    private int pending;
    /** {@code true} while nothing is accepted, for lack of file descriptors. */
    private boolean isPaused;
    /** The number of connections accepted in a row, refused ones included. */
    private int accepted;

    private @Nullable CompletableFuture<Void> closing;

    private long lastWarningNanos;

    /** Creates an acceptor without connections. The clock counts nanoseconds from any origin. */
    public ConnectionAcceptor(ConnectionLimiter limiter, boolean isEncrypted, LongSupplier clock) {
        this(limiter, isEncrypted, new JsonMemoryLimiter(), clock);
    }

    /** Creates an acceptor without connections. It has a limit on the long JSON texts of their responses. */
    public ConnectionAcceptor(
            ConnectionLimiter limiter, boolean isEncrypted, JsonMemoryLimiter jsonMemory, LongSupplier clock) {
        this.jsonMemory = jsonMemory;
        this.limiter = limiter;
        this.isEncrypted = isEncrypted;
        this.handshakes = new Handshakes(clock);
        lastWarningNanos = System.nanoTime() - TimeUnit.MILLISECONDS.toNanos(PAUSE_MILLIS);
    }

    /** Adds an event loop that serves accepted connections. May be called on any thread. */
    void add(Listener server) {
        servers.add(server);
    }

    /** Returns the number of open connections. May be called on any thread. */
    public int open() {
        return open.get();
    }

    /** Returns the number of refused connections. May be called on any thread. */
    public long refused() {
        return refused.get();
    }

    /** Returns the limit on responses that clients do not read. May be called on any thread. */
    UnreadResponseBytes unreadBytes() {
        return unreadBytes;
    }

    /** Returns the limit on the long JSON texts of responses. May be called on any thread. */
    public JsonMemoryLimiter jsonMemory() {
        return jsonMemory;
    }

    /** Records that a connection is ready for requests. May be called on any thread. */
    void connected(Channel connection) {
        if (isEncrypted) {
            handshakes.end(connection);
        }
    }

    /** Stops listening. Blocks: not for an event loop. */
    public @SuppressWarnings("FutureReturnValueIgnored") // the timer has no outcome
    void close() {
        Channel channel = listening;
        if (channel == null) {
            return;
        }
        CompletableFuture<Void> closed = new CompletableFuture<>();
        channel.eventLoop().execute(() -> closing = closed);
        channel.eventLoop().schedule(() -> closeNow(channel), QUIET_MILLIS, TimeUnit.MILLISECONDS);
        try {
            closed.get(CLOSE_SECONDS, TimeUnit.SECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } catch (TimeoutException | ExecutionException e) {
            LOG.atWarn().setCause(e).log("listening socket not closed");
        }
    }

    /**
     * Closes the socket once all pending connections are accepted. Closing it resets connections that the operating
     * system has accepted and this class has not.
     */
    @Override
    public void channelReadComplete(ChannelHandlerContext context) {
        boolean isAll = accepted < MAX_ACCEPTED_AT_ONCE;
        accepted = 0;
        if (closing != null && isAll) {
            closeNow(context.channel());
        }
        context.fireChannelReadComplete();
    }

    private void closeNow(Channel channel) {
        CompletableFuture<Void> closed = closing;
        if (closed != null) {
            channel.close().addListener(_ -> closed.complete(null));
        }
    }

    @Override
    public void handlerAdded(ChannelHandlerContext context) {
        listening = context.channel();
    }

    @Override
    public void channelRead(ChannelHandlerContext context, Object message) {
        Channel connection = (Channel) message;
        accepted++;
        InetAddress client = address(connection);
        if (limiter.open() >= limiter.max() && limiter.isBelowAddressLimit(client)) {
            admitAfterEviction(context, connection, client);
            return;
        }
        admit(context, connection, client);
        if (isNearlyFull()) {
            evictForReserve();
        }
    }

    private boolean isNearlyFull() {
        return limiter.open() > limiter.max() - limiter.max() / RESERVE_DIVISOR;
    }

    private void evictForReserve() {
        if (!closeHandshake(SLOW_HANDSHAKE_NANOS, () -> {})) {
            longestIdle()
                    .filter(port -> !port.idle().isEvictionPending())
                    .ifPresent(port -> closeIdle(port, this::isNearlyFull, MIN_IDLE_NANOS, () -> {}));
        }
    }

    private void admit(ChannelHandlerContext context, Channel connection, InetAddress client) {
        if (context.channel().isActive() && limiter.tryOpen(client)) {
            open.incrementAndGet();
            connection.closeFuture().addListener(_ -> {
                limiter.closed(client);
                open.decrementAndGet();
                if (isEncrypted) {
                    handshakes.end(connection);
                }
            });
            // Set now: the pipeline reads it once, before it sends the first byte.
            connection.config().setMessageSizeEstimator(CapacitySizeEstimator.INSTANCE);
            connection.config().setRecvByteBufAllocator(readBuffers);
            connection.config().setWriteSpinCount(MAX_OPERATIONS_AT_ONCE);
            if (isEncrypted) {
                handshakes.begin(connection);
            }
            context.fireChannelRead(connection);
        } else {
            refused.incrementAndGet();
            connection.unsafe().closeForcibly();
        }
    }

    private static InetAddress address(Channel connection) {
        return connection.remoteAddress() instanceof InetSocketAddress inet && inet.getAddress() != null
                ? inet.getAddress()
                : InetAddress.getLoopbackAddress(); // gone already
    }

    private void admitAfterEviction(ChannelHandlerContext context, Channel connection, InetAddress client) {
        pending++;
        updateAutoRead(context);
        evict(context, connection, client, servers.size() + 1);
    }

    /**
     * Evicts another connection, and then admits a new one.
     *
     * @param attempts the number of connections that may be evicted: another new connection may take the place of one,
     *     and an event loop may have no idle one
     */
    private void evict(ChannelHandlerContext context, Channel connection, InetAddress client, int attempts) {
        EvictionAttempt attempt = new EvictionAttempt(context, () -> retry(context, connection, client, attempts - 1));
        boolean isUnderWay = attempts > 0
                && (closeHandshake(attempts > 1 ? SLOW_HANDSHAKE_NANOS : 0, attempt)
                        || closeIdle(attempts > 1 ? MIN_IDLE_NANOS : 0, attempt)
                        || closeHandshake(0, attempt));
        if (isUnderWay) {
            attempt.limit();
        } else {
            pending--;
            updateAutoRead(context);
            admit(context, connection, client);
        }
    }

    @SuppressWarnings("FutureReturnValueIgnored") // the timer has no outcome
    private void retry(ChannelHandlerContext context, Channel connection, InetAddress client, int attempts) {
        if (hasRoom() || attempts == 0) {
            evict(context, connection, client, 0);
        } else {
            context.executor()
                    .schedule(
                            () -> evict(context, connection, client, hasRoom() ? 0 : attempts),
                            RETRY_MILLIS,
                            TimeUnit.MILLISECONDS)
                    .addListener(waited -> {
                        if (!waited.isSuccess()) { // the event loop ends
                            connection.unsafe().closeForcibly();
                        }
                    });
        }
    }

    private boolean hasRoom() {
        return limiter.open() < limiter.max();
    }

    /**
     * The eviction of a connection by its event loop, with a timeout. An event loop may be blocked. Run by the event
     * loop when it is done; its fields are confined to the accepting thread.
     */
    private static final class EvictionAttempt implements Runnable {
        private final ChannelHandlerContext context;
        private final Runnable next;
        private @Nullable Future<?> limit;
        private boolean isOver;

        EvictionAttempt(ChannelHandlerContext context, Runnable next) {
            this.context = context;
            this.next = next;
        }

        void limit() {
            limit = context.executor().schedule(this::end, IdleConnections.MAX_WAIT_NANOS, TimeUnit.NANOSECONDS);
        }

        @Override
        public void run() {
            context.executor().execute(this::end);
        }

        private void end() {
            if (!isOver) {
                isOver = true;
                if (limit != null) {
                    limit.cancel(false);
                }
                next.run();
            }
        }
    }

    private boolean closeIdle(long minIdleNanos, Runnable next) {
        Optional<Listener> port = longestIdle();
        return port.isPresent() && closeIdle(port.get(), () -> true, minIdleNanos, next);
    }

    /** Makes an event loop close an idle connection. It does so if that is still needed when the task runs. */
    private static boolean closeIdle(Listener port, BooleanSupplier isNeeded, long minIdleNanos, Runnable next) {
        IdleConnections idle = port.idle();
        idle.requestEviction();
        boolean isSubmitted = port.execute(() -> {
            idle.evictionStarted();
            if (isNeeded.getAsBoolean()) {
                idle.closeOldest(minIdleNanos);
            }
            next.run();
        });
        if (!isSubmitted) {
            idle.evictionStarted();
        }
        return isSubmitted;
    }

    private boolean closeHandshake(long minNanos, Runnable next) {
        Optional<Channel> oldest = handshakes.poll(minNanos);
        try {
            oldest.ifPresent(connection -> connection.eventLoop().execute(() -> {
                boolean isComplete = connection.pipeline().get(ResponseWriteHandler.class) != null; // meanwhile
                if (!isComplete) {
                    connection.unsafe().close(connection.voidPromise());
                }
                next.run();
            }));
            return oldest.isPresent();
        } catch (RejectedExecutionException e) {
            return false; // the event loop has ended
        }
    }

    private void updateAutoRead(ChannelHandlerContext context) {
        context.channel().config().setAutoRead(!isPaused && pending < MAX_PENDING);
    }

    /** Returns the event loop of the connection that has been idle for the longest time. */
    private Optional<Listener> longestIdle() {
        Listener found = null;
        for (Listener port : servers) {
            if (port.idle().mayExist()
                    && (found == null
                            || port.idle().oldestSince() - found.idle().oldestSince() < 0)) {
                found = port;
            }
        }
        return Optional.ofNullable(found);
    }

    @Override
    @SuppressWarnings("FutureReturnValueIgnored") // the timer has no outcome
    public void exceptionCaught(ChannelHandlerContext context, Throwable problem) {
        long now = System.nanoTime();
        if (now - lastWarningNanos >= TimeUnit.MILLISECONDS.toNanos(PAUSE_MILLIS)) {
            lastWarningNanos = now;
            LOG.atWarn()
                    .addKeyValue("address", context.channel().localAddress())
                    .addKeyValue("problem", String.valueOf(problem.getMessage()))
                    .log("connection not accepted, next attempt in a second");
        }
        if (problem instanceof IOException) {
            if (!closeHandshake(SLOW_HANDSHAKE_NANOS, () -> {})) {
                closeIdle(0, () -> {});
            }
            // First: without a task that ends it, a pause would last for ever.
            context.executor().schedule(() -> endPause(context), PAUSE_MILLIS, TimeUnit.MILLISECONDS);
            isPaused = true;
            updateAutoRead(context);
        }
    }

    private void endPause(ChannelHandlerContext context) {
        isPaused = false;
        updateAutoRead(context);
    }
}
