package dev.nereid.testkit.server;

import dev.nereid.api.InferenceException;
import dev.nereid.server.NereidServer;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.ModelClient;
import dev.nereid.spi.ModelRequest;
import java.time.Duration;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * A server in memory for unit tests: classes under test, configurations as texts, no sockets and no jars. Safe for use by
 * any thread; {@link #close} blocks.
 *
 * <p>Checks, queues, batchers, sequences, ensembles and errors are the same as in a server. A test takes milliseconds:
 *
 * {@snippet :
 * try (LocalServer server = LocalServer.with(new Twice())
 *                 .model("doubled", "max_batch_size: 8 dynamic_batching { }")
 *                 .start();
 *         ModelResponse response = server.client()
 *                 .request("doubled")
 *                 .input("INPUT", Shape.of(1, 2), 1, 2.5f)
 *                 .sendAndWait()) {
 *     assertThat(response.requireOutput("OUTPUT").floats()).containsExactly(2, 5);
 * }
 * }
 *
 * <p>Outputs that do not fit the configuration, are missing or unknown fail their request here, with a text that names
 * them; a server passes them on or drops them, and logs each once, as {@link LocalServerBuilder#withWrongOutputs} does.
 *
 * <p>{@link #close} completes requests in execution, and fails if a model has not closed memory, a response of another
 * model or an action of its context, with the sentence that a server logs; so if the test has not closed a response.
 */
public final class LocalServer implements AutoCloseable {
    /**
     * How long a close waits for resources that a plugin has not closed. The server has looked for forgotten ones by
     * then.
     */
    private static final int UNENDED_SECONDS = 5;

    private final NereidServer server;
    private final TemporaryRepository files;
    private final Duration timeout;
    private final Queue<ReceivedResponses> received = new ConcurrentLinkedQueue<>();

    LocalServer(NereidServer server, TemporaryRepository files, Duration timeout) {
        this.server = server;
        this.files = files;
        this.timeout = timeout;
    }

    /**
     * Begins a server with backends.
     *
     * @param providers the providers under test, each of a backend with another name
     */
    public static LocalServerBuilder with(BackendProvider... providers) {
        return new LocalServerBuilder(List.of(providers));
    }

    /**
     * Sends a request and records its responses. For decoupled models, errors, and requests that are to wait together.
     *
     * @param request a request of {@link #client} that was not sent yet
     * @return the recorded responses; closed with the server, or before
     */
    public ReceivedResponses send(ModelRequest request) {
        ReceivedResponses responses = new ReceivedResponses(timeout);
        received.add(responses);
        request.send(responses.observer());
        return responses;
    }

    /**
     * Returns the client by which the test sends requests to models, as {@link NereidServer#client}.
     *
     * @return the client; its responses are closed before the server
     */
    public ModelClient client() {
        return server.client();
    }

    /**
     * Returns the server, for functions without a method here: statistics, configurations, loads and unloads.
     *
     * @return the server, closed by {@link #close}
     */
    public NereidServer server() {
        return server;
    }

    /**
     * Completes the requests, closes everything and deletes the files.
     *
     * @throws AssertionError if a model or the test has not closed its resources, or tensor memory is in use
     *     afterwards; after five seconds, if a plugin keeps a sender without a client, or a lease on inputs
     * @throws InferenceException if requests do not end within the timeout
     */
    @Override
    public void close() {
        try {
            received.forEach(ReceivedResponses::close);
            awaitClose();
            check();
        } finally {
            files.close();
        }
    }

    /** Closes the server; fails early if a plugin does not end what the close waits for. */
    private void awaitClose() {
        CompletableFuture<Void> closed = new CompletableFuture<>();
        Thread.ofPlatform().daemon().name("close").start(() -> {
            try {
                server.close();
                closed.complete(null);
            } catch (RuntimeException | Error e) {
                closed.completeExceptionally(e);
            }
        });
        try {
            closed.exceptionally(_ -> null).get(UNENDED_SECONDS, TimeUnit.SECONDS);
        } catch (TimeoutException | ExecutionException e) {
            checkEnded();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        try {
            closed.join();
        } catch (CompletionException e) {
            if (e.getCause() instanceof Error error) {
                throw error;
            }
            throw e.getCause() instanceof RuntimeException cause ? cause : e;
        }
    }

    private void checkEnded() {
        List<String> unended = server.unended();
        if (!unended.isEmpty()) {
            throw new AssertionError(String.join("; ", unended));
        }
    }

    private void check() {
        List<String> forgotten = server.forgotten();
        if (!forgotten.isEmpty()) {
            throw new AssertionError(String.join("; ", forgotten));
        }
        long bytes = server.memory().bytesInUse();
        if (bytes > 0) {
            throw new AssertionError("tensor memory in use after the close: " + bytes + " bytes (expected: 0)");
        }
    }
}
