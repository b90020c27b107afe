package dev.nereid.http.connection;

import io.netty.channel.EventLoop;
import io.vertx.core.Future;
import io.vertx.core.Promise;
import io.vertx.core.internal.ContextInternal;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/**
 * Drains and closes the connections of one event loop. Confined to its event loop, but for the methods that say
 * otherwise.
 *
 * <p>It has two phases. In the drain window requests are served as before, but each response announces the end of its
 * connection. Then idle connections are closed, others after their response; requests over connections that are
 * accepted from then on get the error that the server is exiting.
 */
final class ConnectionDrain {
    /** How long no new connection may come before the port counts as drained. The time begins after all were closed. */
    private static final long QUIET_NANOS = TimeUnit.MILLISECONDS.toNanos(200);

    /** How long a connection stays open after it was accepted or has carried a response. */
    private static final long GRACE_NANOS = TimeUnit.MILLISECONDS.toNanos(400);

    private static final long CLOSED_CHECK_NANOS = TimeUnit.MILLISECONDS.toNanos(10);

    private final ContextInternal context;
    private final EventLoop loop;
    private final Collection<ServerConnection> connections;
    private final ConnectionAcceptor acceptor;
    private final LongSupplier clock;
    private final Promise<Void> drained = Promise.promise();
    private final Promise<Void> closed = Promise.promise();
    private long lastConnected;
    private long abortAt;
    private boolean isClosing;
    private boolean isDrained;

    /** Creates a drain over a view of the event loop's connections, with a clock in nanoseconds from any origin. */
    ConnectionDrain(
            ContextInternal context,
            Collection<ServerConnection> connections,
            ConnectionAcceptor acceptor,
            LongSupplier clock) {
        this.context = context;
        this.loop = context.nettyEventLoop();
        this.connections = connections;
        this.acceptor = acceptor;
        this.clock = clock;
    }

    /** Returns whether responses announce the end of their connections. */
    boolean isClosing() {
        return isClosing;
    }

    /** Returns whether connections are closed as soon as they have no request. */
    boolean isDrained() {
        return isDrained;
    }

    void connected(long now) {
        lastConnected = now;
    }

    /** Records that a connection was closed. */
    void disconnected() {
        if (isClosing) {
            checkDrained();
        }
    }

    /**
     * Starts the phases of the drain. May be called on any thread, once.
     *
     * @param window how long each response announces the end before idle connections are closed
     * @param timeout how long requests may take until all connections are closed
     * @return completed when no connection is left that was there before the end of the window
     */
    Future<Void> start(Duration window, Duration timeout) {
        context.runOnContext(started -> {
            isClosing = true;
            abortAt = clock.getAsLong() + timeout.toNanos();
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
     * Closes the remaining connections after their last responses. To be called once the listening socket is closed.
     * May be called on any thread. Connections that were accepted before the end of the window may be among them, if
     * this event loop had none for a moment; their requests keep the rest of the timeout of requests.
     *
     * @param lateTimeout how long responses may take on connections that were accepted after the end of the window
     * @return completed when all is closed
     */
    Future<Void> close(Duration lateTimeout) {
        context.runOnContext(started -> {
            endWindow();
            if (lateTimeout.isZero()) {
                abortAll();
            } else {
                after(lateTimeout.toNanos(), this::abortAcceptedDuringDrain);
                after(Math.max(lateTimeout.toNanos(), abortAt - clock.getAsLong()), this::abortAll);
            }
            awaitClosed(clock.getAsLong() + lateTimeout.toNanos());
        });
        return closed.future();
    }

    @SuppressWarnings("FutureReturnValueIgnored") // the task has no outcome
    private void after(long nanos, Runnable task) {
        loop.schedule(task, nanos, TimeUnit.NANOSECONDS);
    }

    private void endWindow() {
        isDrained = true;
        closeIdle();
        checkDrained();
    }

    /**
     * Closes the connections without a request, including connections with a part of a header. Connections that were
     * accepted or used a moment ago stay open, since a request may be on its way.
     */
    private void closeIdle() {
        long now = clock.getAsLong();
        boolean isLeft = false;
        for (ServerConnection connection : List.copyOf(connections)) {
            if (connection.hasNoRequestInProgress()) {
                if (now - connection.idleSince() >= GRACE_NANOS) {
                    connection.close();
                } else {
                    isLeft = true;
                }
            }
        }
        if (isLeft) {
            after(GRACE_NANOS / 8, this::closeIdle);
        }
    }

    private void abortAll() {
        List.copyOf(connections).forEach(ServerConnection::abort);
    }

    private void abortAcceptedDuringDrain() {
        List.copyOf(connections).stream()
                .filter(connection -> connection.isAcceptedDuringDrain() || connection.isLingering())
                .forEach(ServerConnection::abort);
    }

    private void checkDrained() {
        if (!connections.stream().allMatch(ServerConnection::isAcceptedDuringDrain)) {
            return;
        }
        if (isDrained) {
            drained.tryComplete();
        } else {
            // Clients of closed connections may be about to connect again.
            after(QUIET_NANOS, this::endIfQuiet);
        }
    }

    private void endIfQuiet() {
        if (connections.isEmpty() && clock.getAsLong() - lastConnected >= QUIET_NANOS) {
            drained.tryComplete();
        }
    }

    /** Waits for all accepted connections. Some of them may not have reached this event loop yet. */
    private void awaitClosed(long until) {
        if (connections.isEmpty() && (acceptor.open() == 0 || clock.getAsLong() - until > 0)) {
            closed.tryComplete();
        } else {
            after(CLOSED_CHECK_NANOS, () -> awaitClosed(until));
        }
    }
}
