package dev.nereid.testkit.server;

import dev.nereid.api.InferRequest;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InputTensor;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.server.NereidServer;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.ModelClient;
import dev.nereid.spi.Tensor;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/**
 * A server in memory for unit tests: classes under test, configurations as texts, no sockets and no jars. Safe for use by
 * any thread; {@link #infer} and {@link #close} block.
 *
 * <p>Checks, queues, batchers, sequences, ensembles and errors are those of the server. A test takes milliseconds:
 *
 * {@snippet :
 * try (LocalServer server = LocalServer.with(new Twice())
 *         .model("doubled", "max_batch_size: 8 dynamic_batching { }")
 *         .start()) {
 *     LocalOutputs outputs = server.infer("doubled", LocalRequest.of("INPUT", 1, 2.5f));
 *
 *     assertThat(outputs.floats("OUTPUT")).containsExactly(2, 5);
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
     * Executes a request and waits for its only response.
     *
     * @param model the name of the model
     * @param request the request
     * @return the response
     * @throws InferenceException the error with which the server ended the request
     * @throws AssertionError if there is no response, more than one, or none in time
     */
    public LocalOutputs infer(String model, LocalRequest request) {
        return send(model, request).response();
    }

    /**
     * Executes a request to a decoupled model and waits for its end.
     *
     * @param model the name of the model
     * @param request the request
     * @return the responses in their order, none included
     * @throws InferenceException the error with which the server ended the request
     * @throws AssertionError if it does not end in time
     */
    public List<LocalOutputs> inferAll(String model, LocalRequest request) {
        return send(model, request).responses();
    }

    /**
     * Sends a request and returns at once.
     *
     * @param model the name of the model
     * @param request the request
     * @return the handle for its responses
     */
    public PendingRequest send(String model, LocalRequest request) {
        List<TensorBuffer> buffers = new ArrayList<>();
        List<InputTensor> inputs = new ArrayList<>();
        DefaultShapes shapes = DefaultShapes.of(server, request.model(model));
        InferRequest received;
        try {
            request.inputs().forEach((name, input) -> {
                Tensor tensor = input.tensor(shapes.shape(name, input.elements()));
                TensorBuffer buffer = server.memory().allocate(tensor.byteSize());
                buffers.add(buffer);
                MemorySegment.copy(tensor.data(), 0, buffer.segment(), 0, tensor.byteSize());
                inputs.add(InputTensor.of(name, Tensor.of(tensor.type(), tensor.shape(), buffer.segment())));
            });
            received = request.received(model, inputs, () -> buffers.forEach(TensorBuffer::close));
        } catch (RuntimeException | Error e) { // such as an input of another size
            buffers.forEach(TensorBuffer::close);
            throw e;
        }
        PendingRequest pending = new PendingRequest(timeout);
        pending.begin(server.infer(received, pending.observer()));
        return pending;
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
     * @throws AssertionError if an instance left scratch memory, a model has not closed a response of another one, or tensor
     *     memory is in use afterwards
     * @throws InferenceException if requests do not end within the timeout
     */
    @Override
    public void close() {
        try {
            server.close();
            left.check(server.memory().bytesInUse(), server.forgotten());
        } finally {
            files.close();
        }
    }
}
