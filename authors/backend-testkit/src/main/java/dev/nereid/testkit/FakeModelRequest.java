package dev.nereid.testkit;

import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.CancelHook;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.ModelRequest;
import dev.nereid.spi.ModelResponse;
import dev.nereid.spi.ModelResponseObserver;
import dev.nereid.spi.Parameters;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.Tensor;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;

/**
 * A request of a {@link FakeModelClient}, completed by the test. Confined to one thread at a time until it is sent; any
 * thread may then complete or cancel it, and its receiver gets one call at a time.
 *
 * <p>Outputs are copied into memory that detects leaks; it is freed when the response is closed and the leases of the output
 * have ended. A cancelled request fails at once with {@link ErrorCode#CANCELLED}; one that was cancelled before it was sent
 * does not reach the client.
 */
public final class FakeModelRequest implements ModelRequest {
    private final String model;
    private final LeakCheckingMemory memory;
    private final Consumer<FakeModelRequest> send;
    private final Map<String, Tensor> inputs = new LinkedHashMap<>();
    private final Map<String, Object> parameters = new LinkedHashMap<>();
    private final List<String> outputs = new ArrayList<>();
    private final AtomicBoolean sent = new AtomicBoolean();
    private final AtomicBoolean completed = new AtomicBoolean();
    private final AtomicInteger openResponses = new AtomicInteger();
    private final CallsInTurn calls = new CallsInTurn();
    private final List<CancelHook> hooks = new CopyOnWriteArrayList<>();
    private final Queue<Runnable> releases = new ConcurrentLinkedQueue<>();

    /** The references to the inputs: of the request, its open responses, and the leases of a test. */
    private final AtomicInteger inputUses = new AtomicInteger(1);

    private List<InferenceRequest> causes = List.of();
    private Optional<Sequence> sequence = Optional.empty();
    private volatile Optional<ModelResponseObserver> observer = Optional.empty();
    private volatile boolean cancelled;
    private boolean isSingle;
    private String id = "";
    private long priority;
    private long timeoutMicros;
    private OptionalLong version = OptionalLong.empty();

    FakeModelRequest(String model, LeakCheckingMemory memory, Consumer<FakeModelRequest> send) {
        this.model = model;
        this.memory = memory;
        this.send = send;
    }

    /** Returns the name of the model. */
    public String model() {
        return model;
    }

    public Map<String, Tensor> inputs() {
        return Map.copyOf(inputs);
    }

    /**
     * Returns the requested outputs.
     *
     * @return the names; empty for all
     */
    public List<String> outputs() {
        return List.copyOf(outputs);
    }

    /**
     * Returns the request that causes this one.
     *
     * @return the request, or empty if there is none, or a batch of several
     */
    public Optional<InferenceRequest> cause() {
        return causes.size() == 1 ? Optional.of(causes.getFirst()) : Optional.empty();
    }

    /**
     * Returns the requests that cause this one, including the requests of a batch.
     *
     * @return the requests without null requests
     */
    public List<InferenceRequest> causes() {
        return causes;
    }

    /**
     * Returns the deadline.
     *
     * @return the latest of the causing requests; empty if one has none
     */
    public OptionalLong deadlineNanos() {
        return causes.stream().anyMatch(request -> request.deadlineNanos().isEmpty())
                ? OptionalLong.empty()
                : causes.stream()
                        .mapToLong(request -> request.deadlineNanos().getAsLong())
                        .reduce((first, second) -> first - second > 0 ? first : second);
    }

    public Parameters parameters() {
        return Parameters.of(parameters);
    }

    /**
     * Returns the id.
     *
     * @return the id that was set, or else that of the causing request; empty for none
     */
    public String id() {
        return id.isEmpty() ? cause().map(InferenceRequest::id).orElse("") : id;
    }

    /**
     * Returns the priority.
     *
     * @return the priority; 0 unless set
     */
    public long priority() {
        return priority;
    }

    /**
     * Returns the limit of the wait in the queue.
     *
     * @return microseconds; 0 unless set
     */
    public long timeoutMicros() {
        return timeoutMicros;
    }

    /**
     * Returns the version.
     *
     * @return the version; empty for the latest
     */
    public OptionalLong version() {
        return version;
    }

    /**
     * Returns the position in a sequence.
     *
     * @return the position, or empty for a request without a sequence
     */
    public Optional<Sequence> sequence() {
        return sequence;
    }

    /**
     * Says whether the request is complete.
     *
     * @return whether its terminal call was made
     */
    public boolean isComplete() {
        return completed.get();
    }

    /**
     * Returns the number of responses that the receiver has not closed.
     *
     * @return the number at this moment
     */
    public int openResponses() {
        return openResponses.get();
    }

    /**
     * Says whether the receiver takes responses.
     *
     * @return {@link ModelResponseObserver#isReady}
     */
    public boolean isReady() {
        return observer.orElseThrow().isReady();
    }

    /**
     * Waits for the receiver as the server does.
     *
     * @param action passed to {@link ModelResponseObserver#onReady}
     */
    public void onReady(Runnable action) {
        observer.orElseThrow().onReady(action);
    }

    /**
     * Sends a response; none if the request is complete.
     *
     * @param values the outputs, which are copied
     */
    public void respond(Map<String, Tensor> values) {
        respond(values, false);
    }

    /**
     * Sends the {@linkplain ModelResponse#isFinal final} response, and ends the request; nothing if it is complete.
     *
     * @param values the outputs, which are copied
     */
    public void respondFinally(Map<String, Tensor> values) {
        respond(values, true);
        complete();
    }

    private void respond(Map<String, Tensor> values, boolean isFinal) {
        if (completed.get()) {
            return;
        }
        Response response = new Response(id(), memory, values, isFinal || isSingle, this); // now: the turn may be later
        calls.run(() -> {
            if (completed.get()) {
                response.close();
            } else {
                observer.orElseThrow().onResponse(response);
            }
        });
    }

    /** Ends the request without an error, after the responses that were sent before. */
    public void complete() {
        end(ModelResponseObserver::onCompleted);
    }

    /** Ends the request with an error, after the responses that were sent before. */
    public void fail(BackendException error) {
        end(receiver -> receiver.onError(error));
    }

    /**
     * Refuses the request, as the server does before it is queued; the receiver tells this from the error of a model by
     * {@link ModelResponseObserver#onRefused}.
     */
    public void refuse(BackendException error) {
        end(receiver -> receiver.onRefused(error));
    }

    private void end(Consumer<ModelResponseObserver> call) {
        calls.run(() -> {
            if (endInTurn()) {
                call.accept(observer.orElseThrow());
            }
        });
    }

    /** Marks the end in the turn of a call, so that responses with an earlier turn are not dropped. */
    private boolean endInTurn() {
        boolean isFirst = completed.compareAndSet(false, true);
        if (isFirst) {
            hooks.forEach(CancelHook::close);
            releaseInputs();
        }
        return isFirst;
    }

    private void releaseInputs() {
        if (inputUses.decrementAndGet() == 0) {
            for (Runnable release = releases.poll(); release != null; release = releases.poll()) {
                release.run();
            }
        }
    }

    /**
     * Keeps the inputs beyond the request, as a model does by {@link InferenceRequest#leaseInputs}. Called before the request
     * is complete.
     *
     * @return ends that; run once
     */
    public Runnable leaseInputs() {
        inputUses.incrementAndGet();
        return this::releaseInputs;
    }

    @Override
    public void cancel() {
        cancelled = true;
        if (observer.isPresent()) {
            fail(new BackendException(ErrorCode.CANCELLED, "request was cancelled"));
        }
    }

    @Override
    public ModelRequest onBehalfOf(InferenceRequest request) {
        causes = List.of(request);
        return this;
    }

    @Override
    public ModelRequest onBehalfOf(Batch batch) {
        causes = batch.requests().stream()
                .filter(request -> !request.isNullRequest())
                .toList();
        return this;
    }

    @Override
    public ModelRequest id(String id) {
        this.id = id;
        return this;
    }

    @Override
    public ModelRequest priority(long priority) {
        this.priority = priority;
        return this;
    }

    @Override
    public ModelRequest timeoutMicros(long micros) {
        timeoutMicros = micros;
        return this;
    }

    @Override
    public ModelRequest version(long version) {
        this.version = OptionalLong.of(version);
        return this;
    }

    @Override
    public ModelRequest input(String name, Tensor tensor) {
        inputs.put(name, tensor);
        return this;
    }

    @Override
    public ModelRequest input(String name, Tensor tensor, Runnable release) {
        releases.add(release);
        return input(name, tensor);
    }

    @Override
    public ModelRequest output(String name) {
        outputs.add(name);
        return this;
    }

    @Override
    public ModelRequest output(String name, MemoryPlace place) {
        return output(name);
    }

    @Override
    public ModelRequest parameter(String name, String value) {
        parameters.put(name, value);
        return this;
    }

    @Override
    public ModelRequest parameter(String name, long value) {
        parameters.put(name, value);
        return this;
    }

    @Override
    public ModelRequest parameter(String name, double value) {
        parameters.put(name, value);
        return this;
    }

    @Override
    public ModelRequest parameter(String name, boolean value) {
        parameters.put(name, value);
        return this;
    }

    @Override
    public ModelRequest sequence(Sequence position) {
        sequence = Optional.of(position);
        return this;
    }

    @Override
    public CompletionStage<ModelResponse> send() {
        isSingle = true;
        CompletableFuture<ModelResponse> stage = new CompletableFuture<>();
        send(new ModelResponseObserver() {
            @Override
            public void onResponse(ModelResponse response) {
                endInTurn(); // the first response of a model that is not decoupled is the last
                if (!stage.complete(response)) {
                    response.close(); // the caller has completed the stage
                }
            }

            @Override
            public void onCompleted() {}

            @Override
            public void onError(BackendException error) {
                stage.completeExceptionally(error);
            }
        });
        return stage;
    }

    @Override
    public void send(ModelResponseObserver receiver) {
        if (!sent.compareAndSet(false, true)) {
            throw new IllegalStateException("request to '" + model + "': sent before (expected: once)");
        }
        observer = Optional.of(receiver);
        if (cancelled) {
            cancel();
            return;
        }
        send.accept(this);
        List<InferenceRequest> open = causes.size() == 1
                ? causes
                : causes.stream()
                        .filter(request -> !(request instanceof FakeRequest fake && fake.isComplete()))
                        .toList();
        AtomicInteger left = new AtomicInteger(open.size());
        for (InferenceRequest request : open) {
            hooks.add(request.onCancel(() -> {
                if (left.decrementAndGet() == 0) {
                    cancel();
                }
            }));
        }
        if (completed.get()) { // while it was sent
            hooks.forEach(CancelHook::close);
        }
    }

    /** A response with an output of each name. Confined to one thread at a time, except the leases. */
    private static final class Response implements ModelResponse {
        /** An output, freed by the last of its references. */
        private record Output(Tensor tensor, TensorBuffer buffer, AtomicInteger references) {
            void release() {
                if (references.decrementAndGet() == 0) {
                    buffer.close();
                }
            }
        }

        private final Map<String, Output> outputs = new LinkedHashMap<>();
        private final String id;
        private final FakeModelRequest request;
        private final boolean isFinal;
        private boolean closed;

        Response(
                String id,
                LeakCheckingMemory memory,
                Map<String, Tensor> values,
                boolean isFinal,
                FakeModelRequest request) {
            this.id = id;
            this.request = request;
            this.isFinal = isFinal;
            try {
                values.forEach((name, value) -> add(memory, name, value));
            } catch (RuntimeException e) {
                outputs.values().forEach(Output::release);
                throw e;
            }
            request.openResponses.incrementAndGet();
            request.inputUses.incrementAndGet();
        }

        private void add(LeakCheckingMemory memory, String name, Tensor value) {
            TensorBuffer buffer = memory.allocate(value.byteSize());
            Tensor copy = Tensor.of(name, value.type(), value.shape(), buffer.segment(), MemoryPlace.HOST);
            outputs.put(name, new Output(copy, buffer, new AtomicInteger(1)));
            MemorySegment.copy(value.data(), 0, buffer.segment(), 0, value.byteSize());
        }

        @Override
        public String id() {
            return id;
        }

        @Override
        public long version() {
            return 1;
        }

        @Override
        public boolean isFinal() {
            return isFinal;
        }

        @Override
        public List<String> outputs() {
            return List.copyOf(outputs.keySet());
        }

        @Override
        public Optional<Tensor> output(String name) {
            return Optional.ofNullable(outputs.get(name)).map(Output::tensor);
        }

        @Override
        public Runnable lease(String name) {
            Output output = outputs.get(name);
            if (output == null) {
                throw new IllegalArgumentException("output '" + name + "' (expected: one of " + outputs() + ")");
            }
            if (closed) {
                throw new IllegalStateException("response: closed (expected: open)");
            }
            output.references().incrementAndGet();
            return output::release;
        }

        @Override
        public Parameters parameters() {
            return Parameters.of(Map.of());
        }

        @Override
        public void close() {
            if (!closed) {
                closed = true;
                request.openResponses.decrementAndGet();
                outputs.values().forEach(Output::release);
                request.releaseInputs();
            }
        }
    }
}
