package dev.nereid.http;

import static java.util.Objects.requireNonNull;

import dev.nereid.http.connection.ConnectionAcceptor;
import dev.nereid.http.connection.EventLoopServer;
import dev.nereid.http.connection.HttpConnectionOptions;
import io.vertx.core.Context;
import io.vertx.core.Future;
import io.vertx.core.Handler;
import io.vertx.core.http.HttpServerOptions;
import io.vertx.core.http.HttpServerRequest;
import io.vertx.core.internal.ContextInternal;
import io.vertx.core.net.SocketAddress;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.time.Duration;
import java.util.concurrent.ExecutionException;

/**
 * Serves one handler over HTTP/1.1 on one event loop, with connection limits. Safe for use by any thread. Serves ports
 * other than that of {@link HttpFrontend}, such as metrics.
 */
public final class BoundedHttpServer implements AutoCloseable {
    private final ConnectionAcceptor acceptor;
    private final EventLoopServer server;

    private BoundedHttpServer(ConnectionAcceptor acceptor, EventLoopServer server) {
        this.acceptor = acceptor;
        this.server = server;
    }

    /**
     * Starts a server, which the caller closes. Blocks: call it on a control thread.
     *
     * @param context the event loop; stays open
     * @param port the port, or 0 for any that is free
     * @param handler responds to requests, on the event loop; malformed requests do not reach it
     * @throws IOException if the address cannot be listened on
     */
    public static BoundedHttpServer start(
            Context context,
            String address,
            int port,
            HttpConnectionOptions options,
            Handler<HttpServerRequest> handler)
            throws IOException {
        requireNonNull(handler, "handler");
        ConnectionAcceptor acceptor = new ConnectionAcceptor(options.limiter(), false, System::nanoTime);
        EventLoopServer server = new EventLoopServer(
                (ContextInternal) context,
                new HttpServerOptions(),
                options,
                acceptor,
                handler,
                EventLoopServer.RefusalListener.NONE,
                System::nanoTime);
        await(server.listen(SocketAddress.inetSocketAddress(port, address)));
        return new BoundedHttpServer(acceptor, server);
    }

    /** Returns the listening port, never 0. */
    public int port() {
        return server.port();
    }

    /** Returns the number of open connections. */
    public int openConnections() {
        return acceptor.open();
    }

    /** Returns the number of connections since the start that were closed at once because of the connection limit. */
    public long refusedConnections() {
        return acceptor.refused();
    }

    /** Closes all connections and the port, without waiting for requests in progress. Blocks. */
    @Override
    public void close() {
        try {
            await(server.drain(Duration.ZERO, Duration.ZERO));
            acceptor.close();
            await(server.closeAfterDrain(Duration.ZERO));
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
