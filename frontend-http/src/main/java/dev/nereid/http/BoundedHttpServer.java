package dev.nereid.http;

import static java.util.Objects.requireNonNull;

import dev.nereid.http.connection.ConnectionAcceptor;
import dev.nereid.http.connection.EventLoopServer;
import dev.nereid.http.connection.HttpConnectionOptions;
import io.vertx.core.Future;
import io.vertx.core.Handler;
import io.vertx.core.Vertx;
import io.vertx.core.http.HttpServerOptions;
import io.vertx.core.http.HttpServerRequest;
import io.vertx.core.internal.VertxInternal;
import io.vertx.core.net.SocketAddress;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.time.Duration;
import java.util.concurrent.ExecutionException;

/**
 * Serves one handler over HTTP/1.1 on one event loop, with connection limits. Safe for use by any thread. For ports
 * beside that of {@link HttpFrontend}.
 */
public final class BoundedHttpServer implements AutoCloseable {
    private final ConnectionAcceptor acceptor;
    private final EventLoopServer port;

    private BoundedHttpServer(ConnectionAcceptor acceptor, EventLoopServer port) {
        this.acceptor = acceptor;
        this.port = port;
    }

    /**
     * Starts serving. Blocks: call it on a control thread.
     *
     * @param vertx whose event loop serves; stays the caller's
     * @param address where to listen
     * @param port the port, or 0 for any that is free
     * @param bounds the bounds on connections
     * @param handler answers requests, on the event loop; those that break the rules of HTTP do not reach it
     * @return the server, to be closed by the caller
     * @throws IOException if the address cannot be listened on
     */
    public static BoundedHttpServer start(
            Vertx vertx, String address, int port, HttpConnectionOptions bounds, Handler<HttpServerRequest> handler)
            throws IOException {
        requireNonNull(handler, "handler");
        ConnectionAcceptor acceptor = new ConnectionAcceptor(bounds.limiter(), false, System::nanoTime);
        EventLoopServer opened = new EventLoopServer(
                ((VertxInternal) vertx).createEventLoopContext(),
                new HttpServerOptions(),
                bounds,
                acceptor,
                handler,
                EventLoopServer.RefusalListener.NONE,
                System::nanoTime);
        await(opened.listen(SocketAddress.inetSocketAddress(port, address)));
        return new BoundedHttpServer(acceptor, opened);
    }

    /**
     * Returns the port that is listened on.
     *
     * @return the port, never 0
     */
    public int port() {
        return port.port();
    }

    /**
     * Returns how many connections are open.
     *
     * @return the number at this moment
     */
    public int openConnections() {
        return acceptor.open();
    }

    /**
     * Returns how many connections were closed at once, since there were too many.
     *
     * @return the number since the start
     */
    public long refusedConnections() {
        return acceptor.refused();
    }

    /** Closes all connections and the port, without waiting for requests in progress. Blocks. */
    @Override
    public void close() {
        try {
            await(port.drain(Duration.ZERO, Duration.ZERO));
            acceptor.close();
            await(port.closeAfterDrain(Duration.ZERO));
        } catch (IOException e) {
            throw new IllegalStateException("port not closed", e);
        }
    }

    private static void await(Future<?> future) throws IOException {
        try {
            future.toCompletionStage().toCompletableFuture().get();
        } catch (ExecutionException e) {
            throw new IOException(e.getCause() == null ? e : e.getCause());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new InterruptedIOException("interrupted");
        }
    }
}
