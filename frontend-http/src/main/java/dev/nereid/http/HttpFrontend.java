package dev.nereid.http;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.InferenceServer;
import io.vertx.core.DeploymentOptions;
import io.vertx.core.Future;
import io.vertx.core.ThreadingModel;
import io.vertx.core.Vertx;
import io.vertx.core.http.HttpServer;
import java.io.IOException;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Serves an inference server over HTTP. Safe for use by any thread. */
public final class HttpFrontend implements AutoCloseable {
    private final Vertx vertx;
    private final HttpOptions options;
    private final List<HttpServer> listeners;
    private final String deployment;

    private HttpFrontend(Vertx vertx, HttpOptions options, List<HttpServer> listeners, String deployment) {
        this.vertx = vertx;
        this.options = options;
        this.listeners = listeners;
        this.deployment = deployment;
    }

    /**
     * Starts serving. Blocks until connections are accepted: call it on a control thread.
     *
     * @param vertx whose event loops serve; stays the caller's
     * @param server who infers
     * @param options where to listen, and within which limits
     * @return the running front end, to be closed by the caller
     * @throws IOException if the address cannot be listened on
     */
    public static HttpFrontend start(Vertx vertx, InferenceServer server, HttpOptions options) throws IOException {
        requireNonNull(server, "server");
        List<HttpServer> listeners = new CopyOnWriteArrayList<>();
        Future<String> deployed = vertx.deployVerticle(
                () -> new HttpListener(server, options, listeners),
                new DeploymentOptions()
                        .setInstances(options.eventLoops())
                        .setThreadingModel(ThreadingModel.EVENT_LOOP));
        try {
            return new HttpFrontend(vertx, options, listeners, deployed.await(10, TimeUnit.SECONDS));
        } catch (TimeoutException | RuntimeException e) {
            throw new IOException(
                    "http-port: " + options.port() + " (expected: a port that is free on " + options.address() + "): "
                            + e.getMessage(),
                    e);
        }
    }

    /**
     * Returns the address that is listened on.
     *
     * @return the address of the options
     */
    public String address() {
        return options.address();
    }

    /**
     * Returns the port that is listened on.
     *
     * @return the port of the options, or the one that was free
     */
    public int port() {
        return listeners.getFirst().actualPort();
    }

    /**
     * Stops accepting connections, waits for the requests in flight, and closes everything; after the time-out of the
     * options it closes the rest too. Blocks: call it on a control thread.
     */
    @Override
    public void close() {
        List<Future<Void>> closing = listeners.stream()
                .map(listener -> listener.shutdown(options.closeTimeout().toMillis(), TimeUnit.MILLISECONDS))
                .toList();
        Future.join(closing).transform(closed -> vertx.undeploy(deployment)).await();
    }
}
