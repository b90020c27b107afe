package dev.nereid.testkit.contract;

import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.SequenceBatching;
import dev.nereid.spi.StateSpec;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeBatch;
import dev.nereid.testkit.FakeRequest;
import dev.nereid.testkit.FakeSender;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/**
 * One execution of a batch, with the checks that every execution has to pass. Confined to the thread of the instance.
 *
 * <p>Inputs and outputs lie in memory that detects leaks and use after the end; everything is freed at the end of the
 * execution, and nothing may be left open.
 */
final class LocalExecution implements AutoCloseable {
    private static final long PAUSE_NANOS = 50_000;

    private final ModelSettings settings;
    private final LeakCheckingMemory memory;
    private final FakeBatch batch;
    private final List<TensorBuffer> buffers = new ArrayList<>();
    private final List<FakeRequest> requests = new ArrayList<>();
    private final List<FakeSender> senders = new ArrayList<>();
    private final Set<Integer> nulls;
    private final List<ContractExample> examples;
    private final Duration timeout;

    /**
     * Prepares an execution.
     *
     * @param model the model
     * @param examples the requests, at least one
     * @param nulls the places of null requests
     * @param memory allocates inputs and outputs; closed at the end
     */
    LocalExecution(ContractModel model, List<ContractExample> examples, Set<Integer> nulls, LeakCheckingMemory memory) {
        this.memory = memory;
        settings = model.settings();
        timeout = model.timeout();
        this.nulls = nulls;
        List<ContractExample> completed = new ArrayList<>();
        for (int i = 0; i < examples.size(); i++) {
            ContractExample example = model.completed(examples.get(i), nulls.contains(i));
            completed.add(example);
            requests.add(request(example, nulls.contains(i)));
        }
        this.examples = List.copyOf(completed);
        batch = new FakeBatch(settings, memory, requests.toArray(FakeRequest[]::new));
    }

    private FakeRequest request(ContractExample example, boolean isNull) {
        List<String> outputs = example.onlyOutput()
                .map(List::of)
                .orElseGet(
                        () -> settings.outputs().stream().map(TensorSpec::name).toList());
        FakeRequest request = new FakeRequest(LocalTensors.items(settings, example.inputs()), outputs);
        example.inputs().forEach((name, tensor) -> request.with(name, copy(tensor)));
        example.parameters().forEach(request::withParameter);
        example.sequence().ifPresent(request::withSequence);
        if (isNull) {
            request.asNullRequest();
        }
        if (settings.decoupled()) {
            FakeSender sender = new FakeSender(memory);
            senders.add(sender);
            request.with(sender);
        } else {
            request.withResponse(memory);
        }
        for (StateSpec state : states()) {
            request.withState(state.outputName(), memory);
        }
        if (settings.sequenceBatching().filter(SequenceBatching::iterative).isPresent()) {
            request.asIterative();
        }
        return request;
    }

    private List<StateSpec> states() {
        return settings.sequenceBatching().map(SequenceBatching::states).orElse(List.of());
    }

    private Tensor copy(Tensor tensor) {
        TensorBuffer buffer = memory.allocate(tensor.byteSize());
        buffers.add(buffer);
        MemorySegment.copy(tensor.data(), 0, buffer.segment(), 0, tensor.byteSize());
        return Tensor.of(tensor.type(), tensor.shape(), buffer.segment());
    }

    /** Cancels all requests, as their clients would. */
    void cancel() {
        requests.forEach(FakeRequest::cancel);
    }

    /** Sets whether the clients of a decoupled model read their responses. */
    void setReady(boolean ready) {
        senders.forEach(sender -> sender.setReady(ready));
    }

    /**
     * Runs the execution up to its end, and frees everything.
     *
     * @param during runs after the return of the instance, before deferred work is awaited
     * @return the response to each request
     * @throws AssertionError if the instance violates the contract
     */
    List<LocalResponse> run(ModelInstance instance, Runnable during) {
        Optional<Throwable> violation = Optional.empty();
        try {
            return execute(instance, during);
        } catch (AssertionError e) {
            violation = Optional.of(e);
            throw e;
        } finally {
            close(violation);
        }
    }

    /**
     * Runs the execution and keeps its outputs, as the server does for clients that read slowly. Afterwards {@link
     * #checkUnchanged} and then {@link #close()} are called.
     *
     * @return the response to each request
     * @throws AssertionError if the instance violates the contract; everything is freed then
     */
    List<LocalResponse> runAndHold(ModelInstance instance) {
        boolean held = false;
        try {
            List<LocalResponse> responses = execute(instance, () -> {});
            InputMemory.poison(buffers, outputs());
            held = true;
            return responses;
        } finally {
            if (!held) {
                close(Optional.of(new AssertionError("failed before")));
            }
        }
    }

    private List<LocalResponse> execute(ModelInstance instance, Runnable during) {
        Optional<BackendException> failure = execute(instance, batch);
        failure.ifPresent(error -> requests.forEach(request -> request.fail(error)));
        during.run();
        awaitEnd();
        List<LocalResponse> responses = new ArrayList<>();
        for (int i = 0; i < requests.size(); i++) {
            checkInputs(i);
            responses.add(response(i));
        }
        return responses;
    }

    /** Returns the memory of all outputs that are not copied yet. */
    private List<MemorySegment> outputs() {
        List<MemorySegment> all = new ArrayList<>();
        batch.outputs().values().forEach(tensor -> all.add(tensor.data()));
        requests.forEach(request -> request.outputs().values().forEach(tensor -> all.add(tensor.data())));
        senders.forEach(sender ->
                sender.responses().forEach(outputs -> outputs.values().forEach(tensor -> all.add(tensor.data()))));
        return all;
    }

    /** Fails if outputs have changed since they were returned. */
    void checkUnchanged(List<LocalResponse> before) {
        for (int i = 0; i < before.size(); i++) {
            List<Map<String, Tensor>> now = responses(i);
            for (int response = 0; response < now.size(); response++) {
                Map<String, Tensor> earlier = before.get(i).responses().get(response);
                now.get(response).forEach((name, tensor) -> {
                    Tensor then = earlier.get(name);
                    if (then == null || then.data().mismatch(tensor.data()) >= 0) {
                        throw new AssertionError("output '" + name
                                + "': changed after the execution (expected: left alone until it is released)");
                    }
                });
            }
        }
    }

    private static Optional<BackendException> execute(ModelInstance instance, FakeBatch batch) {
        try {
            ContextLoader.keeping("ModelInstance.execute", () -> instance.execute(batch));
            return Optional.empty();
        } catch (BackendException e) {
            return Optional.of(e);
        } catch (RuntimeException e) {
            throw new AssertionError(
                    "execute threw " + e + " (expected: BackendException, or the failure of one" + " request)", e);
        }
    }

    private void awaitEnd() {
        try {
            if (!batch.awaitFinish(timeout)) {
                throw new AssertionError("deferred execution: not finished after " + timeout + " (expected: finished)");
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new AssertionError("interrupted", e);
        }
        for (int i = 0; i < senders.size(); i++) {
            FakeSender sender = senders.get(i);
            FakeRequest request = requests.get(i);
            // The server ends a request whose sender the backend never asked for.
            await(
                    () -> sender.hasEnded()
                            || !request.isSenderRequested()
                            || request.isRescheduled()
                            || request.failure().isPresent(),
                    i);
        }
    }

    private void await(BooleanSupplier ended, int place) {
        long start = System.nanoTime();
        while (!ended.getAsBoolean()) {
            if (System.nanoTime() - start > timeout.toNanos()) {
                throw new AssertionError("request " + place + ": its sender is open after " + timeout
                        + " (expected: complete() or fail() exactly once)");
            }
            LockSupport.parkNanos(PAUSE_NANOS);
        }
    }

    private void checkInputs(int place) {
        examples.get(place).inputs().forEach((name, given) -> {
            MemorySegment now = requests.get(place).input(name).orElseThrow().data();
            if (given.data().mismatch(now) >= 0) {
                throw new AssertionError("input '" + name + "' of request " + place
                        + ": changed by the execution (expected: inputs are read only)");
            }
        });
    }

    /** Copies the outputs of a request. */
    private List<Map<String, Tensor>> responses(int place) {
        List<Map<String, Tensor>> responses = new ArrayList<>();
        if (settings.decoupled()) {
            senders.get(place).responses().forEach(outputs -> responses.add(LocalTensors.copies(outputs)));
        } else {
            Map<String, Tensor> outputs =
                    new LinkedHashMap<>(LocalTensors.copies(requests.get(place).outputs()));
            outputs.putAll(LocalTensors.parts(settings, batch, requests, place));
            responses.add(outputs);
        }
        return responses;
    }

    private LocalResponse response(int place) {
        FakeRequest request = requests.get(place);
        List<Map<String, Tensor>> responses = responses(place);
        if (!nulls.contains(place)) {
            responses.forEach(outputs -> LocalTensors.check(
                    settings, LocalTensors.items(settings, examples.get(place).inputs()), outputs));
            if (hasRequiredInputs(examples.get(place))) {
                checkComplete(request, responses);
            }
        }
        Map<String, Tensor> states = new LinkedHashMap<>();
        for (StateSpec state : states()) {
            Optional<Tensor> written = request.writtenState(state.outputName());
            written.ifPresent(tensor -> states.put(state.outputName(), LocalTensors.copy(tensor)));
            if (written.isEmpty()) {
                LocalTensors.part(batch.writtenState(state.outputName()), requests, place)
                        .ifPresent(tensor -> states.put(state.outputName(), tensor));
            }
        }
        Optional<BackendException> failure =
                settings.decoupled() ? senders.get(place).failure().or(request::failure) : request.failure();
        return new LocalResponse(responses, states, failure, request.isRescheduled());
    }

    /** Returns whether the server would accept a request. */
    private boolean hasRequiredInputs(ContractExample example) {
        return settings.inputs().stream()
                .allMatch(input -> input.is(TensorSpec.Trait.OPTIONAL)
                        || example.inputs().containsKey(input.name()));
    }

    /** Fails if a response lacks requested outputs: the server would send it without them. */
    private void checkComplete(FakeRequest request, List<Map<String, Tensor>> responses) {
        boolean mayLack = settings.decoupled()
                || request.failure().isPresent()
                || request.isCancelled()
                || request.isRescheduled();
        for (String output : request.requestedOutputs()) {
            if (!mayLack && !responses.getFirst().containsKey(output)) {
                throw new AssertionError(
                        "output '" + output + "' of response 0: missing (expected: all requested outputs)");
            }
        }
    }

    /** Frees everything as the server does, and fails if something is open. Only after {@link #runAndHold}. */
    @Override
    public void close() {
        close(Optional.empty());
    }

    private void close(Optional<Throwable> violation) {
        try {
            batch.close();
            senders.forEach(FakeSender::close);
            buffers.forEach(TensorBuffer::close);
            memory.close();
        } catch (AssertionError e) {
            if (violation.isEmpty()) {
                throw e;
            }
            violation.get().addSuppressed(e);
        }
    }
}
