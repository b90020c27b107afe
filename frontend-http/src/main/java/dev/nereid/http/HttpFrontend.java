package dev.nereid.http;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.InferenceServer;
import dev.nereid.api.tls.TlsCredentials;
import dev.nereid.api.tls.TlsReloader;
import dev.nereid.http.body.RequestFailures;
import dev.nereid.http.connection.ConnectionAcceptor;
import dev.nereid.http.connection.EventLoopServer;
import dev.nereid.http.connection.HttpConnectionOptions;
import dev.nereid.http.json.JsonMemoryLimiter;
import dev.nereid.http.tls.VertxTlsOptions;
import io.vertx.core.Future;
import io.vertx.core.Vertx;
import io.vertx.core.http.HttpServerOptions;
import io.vertx.core.internal.ContextInternal;
import io.vertx.core.net.ServerSSLOptions;
import io.vertx.core.net.SocketAddress;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;

/** Serves an {@link dev.nereid.api.InferenceServer} over HTTP/1.1. Safe for use by any thread. */
public final class HttpFrontend implements AutoCloseable {
    private static final Duration START_TIMEOUT = Duration.ofSeconds(10);

    /** Timeout of the last responses on connections that were accepted after the drain window. */
    private static final Duration LAST_RESPONSES_TIMEOUT = Duration.ofSeconds(1);

    private final AtomicBoolean closed = new AtomicBoolean();
    private final Vertx vertx;
    private final HttpOptions options;
    private final ConnectionAcceptor acceptor;
    /** The servers that listen, one for each event loop. */
    private final List<EventLoopServer> servers;

    private final String deployment;
    /** The timer that starts checks of the TLS files. */
    private final Optional<Long> reloadTimer;

    private HttpFrontend(
            Vertx vertx,
            HttpOptions options,
            ConnectionAcceptor acceptor,
            List<EventLoopServer> servers,
            String deployment,
            Optional<TlsCredentials> credentials) {
        this.vertx = vertx;
        this.options = options;
        this.acceptor = acceptor;
        this.servers = servers;
        this.deployment = deployment;
        this.reloadTimer = credentials.map(this::startReloads);
    }

    /**
     * Starts a front end, which the caller closes. Blocks until connections are accepted: call it on a control thread.
     *
     * @param vertx provides the event loops; stays open
     * @throws IOException if the address cannot be listened on; {@link dev.nereid.api.tls.TlsFilesException} if a TLS
     *     file cannot be used
     * @throws IllegalStateException if the program has other versions of libraries, such as a framework's
     */
    public static HttpFrontend start(Vertx vertx, InferenceServer server, HttpOptions options) throws IOException {
        requireNonNull(vertx, "vertx");
        try {
            return start(vertx, server, options, new JsonMemoryLimiter());
        } catch (LinkageError e) {
            throw new IllegalStateException(
                    "HTTP front end: Vert.x and Netty of other versions (expected: Vert.x 5.1 and Netty 4.2, or later; import"
                            + " their BOMs before other BOMs): " + e,
                    e);
        }
    }

    /** Starts serving with another limit on the memory of large JSON texts. */
    static HttpFrontend start(Vertx vertx, InferenceServer server, HttpOptions options, JsonMemoryLimiter jsonMemory)
            throws IOException {
        requireNonNull(server, "server");
        Optional<TlsCredentials> credentials = Optional.empty();
        if (options.security().tls().isPresent()) {
            credentials =
                    Optional.of(TlsCredentials.read(options.security().tls().get()));
        }
        return start(vertx, server, options, jsonMemory, credentials);
    }

    private static HttpFrontend start(
            Vertx vertx,
            InferenceServer server,
            HttpOptions options,
            JsonMemoryLimiter jsonMemory,
            Optional<TlsCredentials> credentials)
            throws IOException {
        List<EventLoopServer> servers = new CopyOnWriteArrayList<>();
        SocketAddress address = options.port() == 0
                ? SocketAddress.sharedRandomPort(
                        ThreadLocalRandom.current().nextInt(1, Integer.MAX_VALUE), options.address())
                : SocketAddress.inetSocketAddress(options.port(), options.address());
        ConnectionAcceptor acceptor = new ConnectionAcceptor(
                options.connections().limiter(), credentials.isPresent(), jsonMemory, System::nanoTime);
        Future<String> deployed = EventLoopDeployment.of(vertx, options.eventLoops(), context -> {
            EventLoopServer http = create(context, server, options, acceptor, credentials);
            return http.listen(address).onSuccess(_ -> servers.add(http));
        });
        try {
            String deployment =
                    deployed.toCompletionStage().toCompletableFuture().get(START_TIMEOUT.toSeconds(), TimeUnit.SECONDS);
            return new HttpFrontend(vertx, options, acceptor, servers, deployment, credentials);
        } catch (ExecutionException | TimeoutException e) {
            if (e.getCause() instanceof LinkageError linkage) {
                throw linkage;
            }
            throw new IOException(
                    "http-port: " + options.port() + " (expected: a port that is free on " + options.address() + "): "
                            + (e.getCause() == null ? "timed out" : e.getCause().getMessage()),
                    e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new InterruptedIOException("http-port: " + options.port() + " (expected: no interruption)");
        }
    }

    /** Creates the server of one event loop, which does not listen yet. */
    private static EventLoopServer create(
            ContextInternal context,
            InferenceServer server,
            HttpOptions options,
            ConnectionAcceptor acceptor,
            Optional<TlsCredentials> credentials) {
        HttpServerOptions serverOptions = new HttpServerOptions();
        credentials.ifPresent(current -> VertxTlsOptions.apply(
                current, serverOptions, options.connections().timeouts().tlsHandshake()));
        EventLoopServer http = new EventLoopServer(
                context,
                serverOptions,
                options.connections(),
                acceptor,
                new Routes(server, options, context, acceptor.jsonMemory()),
                (path, cause, status) -> RequestFailures.refuse(server, path, cause, status),
                System::nanoTime);
        if (options.forwardedHeaders().isPresent()) {
            http.keepTrailingSpace();
        }
        return http;
    }

    public String address() {
        return options.address();
    }

    /** Returns the listening port: that of the options, or the chosen free port. */
    public int port() {
        return servers.getFirst().port();
    }

    /** Returns the number of open connections. */
    public int openConnections() {
        return acceptor.open();
    }

    /** Returns the number of connections since the start that were closed at once because of the connection limit. */
    public long refusedConnections() {
        return acceptor.refused();
    }

    private long startReloads(TlsCredentials used) {
        TlsReloader reloader = new TlsReloader("http", used, this::executeBlocking, this::updateSslOptions);
        return vertx.setPeriodic(used.files().reloadInterval().toMillis(), _ -> reloader.check());
    }

    private void executeBlocking(Runnable task) {
        vertx.executeBlocking(() -> {
            task.run();
            return true;
        });
    }

    /** Encrypts new connections of all event loops with other credentials. */
    private CompletionStage<?> updateSslOptions(TlsCredentials credentials) {
        ServerSSLOptions encryption = VertxTlsOptions.of(credentials);
        return Future.all(servers.stream()
                        .map(server -> server.updateSslOptions(encryption.copy()))
                        .toList())
                .toCompletionStage();
    }

    /**
     * Closes the connections and the port, in phases. During the drain window each response announces the end of its
     * connection. Then idle connections are closed, others after their response, and new connections receive
     * {@code 503 Server exiting}. After the close timeout of the options all others are closed. Without connections it
     * returns at once. Blocks: call it on a control thread. Later calls do nothing.
     */
    @Override
    public void close() {
        if (!closed.compareAndSet(false, true)) {
            return;
        }
        reloadTimer.ifPresent(vertx::cancelTimer);
        HttpConnectionOptions connections = options.connections();
        Future.join(servers.stream()
                        .map(server -> server.drain(connections.drainWindow(), connections.closeTimeout()))
                        .toList())
                .await();
        // Before the event loops stop: a connection that is accepted later would have none.
        acceptor.close();
        Future.join(servers.stream()
                        .map(server -> server.closeAfterDrain(LAST_RESPONSES_TIMEOUT))
                        .toList())
                .transform(closing -> vertx.undeploy(deployment))
                .await();
    }
}
