package dev.nereid.server.client;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.Cancellation;
import dev.nereid.api.InferRequest;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InferenceServer;
import dev.nereid.api.InputTensor;
import dev.nereid.api.ModelRef;
import dev.nereid.api.RequestOptions;
import dev.nereid.api.RequestedOutput;
import dev.nereid.api.call.CallChain;
import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.repository.ModelKey;
import dev.nereid.scheduler.client.RunningExecution;
import dev.nereid.scheduler.memory.StackReserve;
import dev.nereid.scheduler.request.ObserverScope;
import dev.nereid.scheduler.request.SchedulerErrors;
import dev.nereid.server.response.ResponseHolder;
import dev.nereid.spi.Batch;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.ModelRequest;
import dev.nereid.spi.ModelResponse;
import dev.nereid.spi.ModelResponseObserver;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.Tensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A request of a model or an embedding program to a model. Confined to one thread at a time, except its cancellation. */
final class OutgoingRequest implements ModelRequest {
    private static final Logger LOG = LoggerFactory.getLogger(OutgoingRequest.class);

    /** In bytes; equal to the alignment of the server's buffers. */
    private static final long ALIGNMENT = 64;

    private final ModelClients clients;
    private final ResponseHolder holder;
    private final String model;
    private final List<InputTensor> inputs = new ArrayList<>();
    /** The inputs with memory that the server may know. */
    private final List<Tensor> tensors = new ArrayList<>();

    /** Release the memory of the other inputs. */
    private final List<Runnable> releases = new ArrayList<>();

    private final List<RequestedOutput> outputs = new ArrayList<>();
    private final Map<String, ParameterValue> parameters = new LinkedHashMap<>();
    private CausingRequests causes = CausingRequests.NONE;
    private long version = ModelRef.LATEST;
    private String id = "";
    private long priority;
    private long timeoutMicros;
    private Optional<Sequence> sequence = Optional.empty();
    private Optional<InferenceException> refusal = Optional.empty();
    private boolean sent;

    /** Cancels the request; {@code null} until it is submitted. */
    private volatile @Nullable Cancellation submitted;

    private volatile boolean cancelled;

    /**
     * Creates a request without inputs.
     *
     * @param holder the version or the program that sends it, and holds the responses
     * @param model the key of the other model, or its name
     */
    OutgoingRequest(ModelClients clients, ResponseHolder holder, String model) {
        this.clients = clients;
        this.holder = holder;
        this.model = model;
    }

    @Override
    public ModelRequest onBehalfOf(InferenceRequest causing) {
        causes = CausingRequests.of(causing);
        return this;
    }

    @Override
    public ModelRequest onBehalfOf(Batch causing) {
        causes = CausingRequests.of(causing);
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
        this.version = version;
        return this;
    }

    @Override
    public ModelRequest input(String name, Tensor tensor) {
        add(name, tensor);
        tensors.add(tensor);
        return this;
    }

    @Override
    public ModelRequest input(String name, Tensor tensor, Runnable release) {
        requireNonNull(release, "release");
        add(name, tensor);
        releases.add(release);
        return this;
    }

    private void add(String name, Tensor tensor) {
        if (tensor.fence().isPresent()) {
            throw new IllegalArgumentException(
                    "input '" + name + "': " + tensor + " with a fence (expected: without, after its work)");
        }
        InputTensor input = InputTensor.of(name, tensor);
        inputs.add(tensor.data().isNative() ? input : input.withData(copyOf(tensor.data())));
    }

    private static MemorySegment copyOf(MemorySegment array) {
        return Arena.ofAuto().allocate(array.byteSize(), ALIGNMENT).copyFrom(array);
    }

    @Override
    public ModelRequest output(String name) {
        outputs.add(RequestedOutput.of(name));
        return this;
    }

    @Override
    public ModelRequest output(String name, MemoryPlace place) {
        if (!place.isHost()) {
            refusal = Optional.of(new InferenceException(
                    ErrorCode.UNSUPPORTED,
                    "output '" + name + "': no memory of " + place + " (expected: host memory)"));
        }
        return output(name);
    }

    @Override
    public ModelRequest parameter(String name, String value) {
        return put(name, new ParameterValue.Text(value));
    }

    @Override
    public ModelRequest parameter(String name, long value) {
        return put(name, new ParameterValue.Int(value));
    }

    @Override
    public ModelRequest parameter(String name, double value) {
        return put(name, new ParameterValue.Real(value));
    }

    @Override
    public ModelRequest parameter(String name, boolean value) {
        return put(name, new ParameterValue.Bool(value));
    }

    private ModelRequest put(String name, ParameterValue value) {
        parameters.put(requireNonNull(name, "name"), value);
        return this;
    }

    @Override
    public ModelRequest sequence(Sequence sequence) {
        this.sequence = Optional.of(sequence);
        return this;
    }

    @Override
    public CompletionStage<ModelResponse> send() {
        SingleResponse single = new SingleResponse(this, model, holder.actions());
        send(single);
        return single.outcome();
    }

    @Override
    public ModelResponse sendAndWait() throws InterruptedException {
        Optional<RunningExecution> current = clients.currentExecution();
        boolean isShort = current.map(RunningExecution::isShort).orElse(false);
        if (isShort || ObserverScope.current().isOpen()) {
            throw new IllegalStateException("sendAndWait: request to model '" + model + "' on thread '"
                    + Thread.currentThread().getName() + "', which must not block, since it "
                    + (isShort
                            ? "may serve connections too (expected: send, or executions that are LONG, not SHORT)"
                            : "calls observers of other requests (expected: send)"));
        }
        SingleResponse single = new SingleResponse(this, model, Runnable::run);
        send(single, current.map(RunningExecution::chain).orElse(CallChain.NONE));
        return single.await();
    }

    @Override
    public void send(ModelResponseObserver observer) {
        send(observer, CallChain.NONE);
    }

    @Override
    public void cancel() {
        StackReserve.require();
        cancelNow();
    }

    /** Cancels the request like {@link #cancel}, inside of a call that has checked the stack. */
    void cancelNow() {
        cancelled = true;
        Cancellation cancellation = submitted;
        if (cancellation != null) {
            cancellation.cancel();
        }
    }

    private void send(ModelResponseObserver observer, CallChain waiting) {
        StackReserve.require();
        if (sent) {
            throw new IllegalStateException("request to model '" + model + "': sent before (expected: sent once)");
        }
        sent = true;
        ResponseHolder.Sent counted = holder.sends();
        SentModelRequest request =
                new SentModelRequest(this, model, observer, response -> holder.add(response, counted));
        KeptInputs kept = new KeptInputs(model, releases);
        InferenceServer server;
        InferRequest outgoing;
        try {
            boolean begun = false;
            try {
                if (cancelled) {
                    throw SchedulerErrors.cancelled();
                }
                refusal.ifPresent(reason -> {
                    throw reason;
                });
                server = clients.server();
                tensors.forEach(tensor -> keep(tensor, kept));
                outgoing = request(waiting, kept);
                request.begin(causes); // fails for a cause with a finished execution
                begun = true;
            } finally {
                if (!begun) {
                    kept.run();
                }
            }
        } catch (InferenceException e) {
            if (cancelled) {
                request.onError(e);
            } else {
                request.onRefused(e);
            }
            return;
        }
        Cancellation cancellation = server.infer(outgoing, request);
        submitted = cancellation;
        if (cancelled) { // while it was submitted
            cancellation.cancel();
        }
    }

    private InferRequest request(CallChain waiting, KeptInputs kept) {
        CallChain chain = causes.chain().join(waiting);
        CallChain callers = holder.caller()
                .map(caller -> chain.with(ModelKey.name(caller.name())))
                .orElse(chain);
        RequestOptions options =
                new RequestOptions(priority, timeoutMicros, causes.deadlineNanos(), sequence, callers, kept.isCallers);
        return new InferRequest(
                new ModelRef(model, version),
                id.isEmpty() ? causes.id() : id,
                List.copyOf(inputs),
                List.copyOf(outputs),
                Map.copyOf(parameters),
                options,
                kept);
    }

    /** Keeps the memory of an input if the server knows it. */
    private void keep(Tensor tensor, KeptInputs kept) {
        Optional<Runnable> release = causes.keep(tensor).or(() -> holder.keep(tensor));
        release.ifPresent(kept.memory::add);
        kept.isCallers |= release.isEmpty() && tensor.data().isNative();
    }

    /** Releases the memory of the inputs, once. */
    private static final class KeptInputs implements Runnable {
        private final String model;
        private final List<Runnable> memory;
        private final AtomicBoolean released = new AtomicBoolean();

        /** Set before the request is sent, if memory of an input belongs to the caller and is not kept. */
        private boolean isCallers;

        /** Takes over the actions that release memory of the caller. */
        KeptInputs(String model, List<Runnable> memory) {
            this.model = model;
            this.memory = memory;
        }

        @Override
        public void run() {
            if (released.compareAndSet(false, true)) {
                memory.forEach(this::release);
            }
        }

        private void release(Runnable action) {
            try {
                action.run();
            } catch (RuntimeException e) { // of the backend
                LOG.atError()
                        .addKeyValue("model", model)
                        .setCause(e)
                        .log("release of an input of a model's request failed (model '{}')", model);
            }
        }
    }
}
