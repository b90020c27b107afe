package dev.nereid.testkit.server;

import dev.nereid.api.InferenceException;
import dev.nereid.server.NereidServer;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.ModelClient;
import dev.nereid.spi.ModelRequest;
import java.time.Duration;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;

/**
 * A server in memory for unit tests: classes under test, configurations as texts, no sockets and no jars. Safe for use by
 * any thread; {@link #close} blocks.
 *
 * <p>Checks, queues, batchers, sequences, ensembles and errors are those of the server. A test takes milliseconds:
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
 * <p>{@link #close} completes what is still executed, and fails if a model or a backend left tensor memory in use,
 * or has not closed a response of another model, with the sentence that a server logs; so if the test has not.
 */
public final class LocalServer implements AutoCloseable {
    private final NereidServer server;
    private final TemporaryRepository files;
    private final Duration timeout;
    private final LeftMemory left;
    private final Queue<ReceivedResponses> received = new ConcurrentLinkedQueue<>();

    /** Takes over a server and its files. */
    LocalServer(NereidServer server, TemporaryRepository files, Duration timeout, LeftMemory left) {
        this.server = server;
        this.files = files;
        this.timeout = timeout;
        this.left = left;
    }

    /**
     * Begins a server with backends.
     *
     * @param providers the providers under test, each of a backend with a name of its own
     * @return the builder of the server
     */
    public static LocalServerBuilder with(BackendProvider... providers) {
        return new LocalServerBuilder(List.of(providers));
    }

    /**
     * Sends a request and records what it receives. For decoupled models, errors, and requests that are to wait together.
     *
     * @param request a request of {@link #client} that was not sent yet
     * @return what it receives; closed with the server, or before
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
     * @return the client, whose responses are closed before the server
     */
    public ModelClient client() {
        return server.client();
    }

    /**
     * Returns the server itself, for what has no method here: statistics, configurations, loads and unloads.
     *
     * @return the server, closed by {@link #close}
     */
    public NereidServer server() {
        return server;
    }

    /**
     * Completes the requests, closes everything and deletes the files.
     *
     * @throws AssertionError if an instance left scratch memory, a model or the test has not closed a response, or tensor
     *     memory is in use afterwards
     * @throws InferenceException if requests do not end within the timeout
     */
    @Override
    public void close() {
        try {
            received.forEach(ReceivedResponses::close);
            server.close();
            left.check(server.memory().bytesInUse(), server.forgotten());
        } finally {
            files.close();
        }
    }
}
