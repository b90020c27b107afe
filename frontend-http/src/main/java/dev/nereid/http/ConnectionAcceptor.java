package dev.nereid.http;

import dev.nereid.api.ConnectionLimiter;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandler.Sharable;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Counts the connections that a listening socket accepts, before they have an event loop or memory, and closes those
 * beyond the bound. Confined to the thread that accepts, but for the methods that say otherwise.
 *
 * <p>When the bound is reached, the connection that has been idle for the longest time makes room for a new one. Without
 * one the new connection is closed at once. When the process has no file descriptor for another connection, nothing is
 * accepted for a second.
 */
@Sharable // by the listeners of one port, which have one socket
final class ConnectionAcceptor extends ChannelInboundHandlerAdapter {
    private static final Logger log = LoggerFactory.getLogger(ConnectionAcceptor.class);

    /** How many connections may wait for room, each with a file descriptor; meanwhile no more are accepted. */
    private static final int MAX_WAITING = 64;

    /** The part of the bound that connections which do nothing leave to others, of this port or another. */
    private static final int RESERVE_DIVISOR = 16;

    private static final long PAUSE_MILLIS = 1_000;
    private static final long CLOSE_SECONDS = 5;

    /** How long the end waits for another connection, after which everything is accepted for a moment. */
    private static final long QUIET_MILLIS = 20;

    /** How many connections the transport accepts in a row. */
    private static final int MAX_ACCEPTED_AT_ONCE = 16;

    private final ConnectionLimiter limiter;
    private final List<HttpPort> ports = new CopyOnWriteArrayList<>();
    private volatile @Nullable Channel listening;
    private final AtomicInteger open = new AtomicInteger();
    private final AtomicLong refused = new AtomicLong();
    private int waiting;
    /** How many connections came in a row, refused ones too. */
    private int accepted;

    private @Nullable CompletableFuture<Void> closing;

    private long lastComplaint;

    ConnectionAcceptor(ConnectionLimiter limiter) {
        this.limiter = limiter;
        lastComplaint = System.nanoTime() - TimeUnit.MILLISECONDS.toNanos(PAUSE_MILLIS);
    }

    /** Adds an event loop that serves accepted connections. May be called on any thread. */
    void add(HttpPort port) {
        ports.add(port);
    }

    /** Returns how many connections are open. May be called on any thread. */
    int open() {
        return open.get();
    }

    /** Returns how many connections were refused. May be called on any thread. */
    long refused() {
        return refused.get();
    }

    /** Stops to listen. Blocks: not for an event loop. */
    @SuppressWarnings("FutureReturnValueIgnored") // the timer has no outcome
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
            log.atWarn().setCause(e).log("listening socket not closed");
        }
    }

    /**
     * Closes the socket when all has been accepted that clients have connected: the end of the socket resets connections
     * that the operating system has accepted and this has not.
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
        if (limiter.open() >= limiter.max() && limiter.hasRoomFor(client)) {
            awaitRoom(context, connection, client);
            return;
        }
        admit(context, connection, client);
        if (isNearlyFull()) {
            longestIdle().ifPresent(port -> port.execute(() -> leaveReserve(port)));
        }
    }

    private boolean isNearlyFull() {
        return limiter.open() > limiter.max() - limiter.max() / RESERVE_DIVISOR;
    }

    /** Closes an idle connection, unless others have been closed meanwhile. */
    private void leaveReserve(HttpPort port) {
        if (isNearlyFull()) {
            port.closeLongestIdle();
        }
    }

    private void admit(ChannelHandlerContext context, Channel connection, InetAddress client) {
        if (context.channel().isActive() && limiter.tryOpen(client)) {
            open.incrementAndGet();
            connection.closeFuture().addListener(_ -> {
                limiter.closed(client);
                open.decrementAndGet();
            });
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

    private void awaitRoom(ChannelHandlerContext context, Channel connection, InetAddress client) {
        Optional<HttpPort> port = longestIdle();
        waiting++;
        if (waiting == MAX_WAITING) {
            context.channel().config().setAutoRead(false);
        }
        boolean isAsked = port.isPresent()
                && port.get().execute(() -> {
                    port.get().closeLongestIdle();
                    context.executor().execute(() -> retry(context, connection, client));
                });
        if (!isAsked) {
            retry(context, connection, client);
        }
    }

    private void retry(ChannelHandlerContext context, Channel connection, InetAddress client) {
        if (waiting == MAX_WAITING) {
            context.channel().config().setAutoRead(true);
        }
        waiting--;
        admit(context, connection, client);
    }

    /** Returns the event loop that has the connection that has been idle for the longest time. */
    private Optional<HttpPort> longestIdle() {
        HttpPort found = null;
        for (HttpPort port : ports) {
            if (port.mayHaveIdle() && (found == null || port.idleSince() - found.idleSince() < 0)) {
                found = port;
            }
        }
        return Optional.ofNullable(found);
    }

    @Override
    @SuppressWarnings("FutureReturnValueIgnored") // the timer has no outcome
    public void exceptionCaught(ChannelHandlerContext context, Throwable problem) {
        long now = System.nanoTime();
        if (now - lastComplaint >= TimeUnit.MILLISECONDS.toNanos(PAUSE_MILLIS)) {
            lastComplaint = now;
            log.atWarn()
                    .addKeyValue("address", context.channel().localAddress())
                    .addKeyValue("problem", String.valueOf(problem.getMessage()))
                    .log("connection not accepted, next attempt in a second");
        }
        if (problem instanceof IOException) {
            longestIdle().ifPresent(port -> port.execute(port::closeLongestIdle));
            context.channel().config().setAutoRead(false);
            context.executor()
                    .schedule(() -> context.channel().config().setAutoRead(true), PAUSE_MILLIS, TimeUnit.MILLISECONDS);
        }
    }
}
