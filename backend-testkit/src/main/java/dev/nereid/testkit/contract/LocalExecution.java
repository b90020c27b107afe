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
final class LocalExecution {
    private static final long PAUSE_NANOS = 50_000;

    private final ModelSettings settings;
    private final LeakCheckingMemory memory;
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
        this.examples = examples;
        this.nulls = nulls;
        for (int i = 0; i < examples.size(); i++) {
            requests.add(request(examples.get(i), nulls.contains(i)));
        }
    }

    private FakeRequest request(ContractExample example, boolean isNull) {
        List<String> outputs = settings.outputs().stream().map(TensorSpec::name).toList();
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

    /**
     * Runs the execution up to its end.
     *
     * @param during runs after the return of the instance, before deferred work is awaited
     * @return the response to each request
     * @throws AssertionError if the instance violates the contract
     */
    List<LocalResponse> run(ModelInstance instance, Runnable during) {
        FakeBatch batch = new FakeBatch(settings, memory, requests.toArray(FakeRequest[]::new));
        List<LocalResponse> responses = new ArrayList<>();
        Optional<Throwable> violation = Optional.empty();
        try {
            Optional<BackendException> failure = execute(instance, batch);
            failure.ifPresent(error -> requests.forEach(request -> request.fail(error)));
            during.run();
            awaitEnd(batch);
            for (int i = 0; i < requests.size(); i++) {
                checkInputs(i);
                responses.add(response(batch, i));
            }
        } catch (AssertionError e) {
            violation = Optional.of(e);
            throw e;
        } finally {
            close(batch, violation);
        }
        return responses;
    }

    private static Optional<BackendException> execute(ModelInstance instance, FakeBatch batch) {
        try {
            instance.execute(batch);
            return Optional.empty();
        } catch (BackendException e) {
            return Optional.of(e);
        } catch (RuntimeException e) {
            throw new AssertionError(
                    "execute threw " + e + " (expected: BackendException, or the failure of one" + " request)", e);
        }
    }

    private void awaitEnd(FakeBatch batch) {
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

    private LocalResponse response(FakeBatch batch, int place) {
        FakeRequest request = requests.get(place);
        List<Map<String, Tensor>> responses = new ArrayList<>();
        if (settings.decoupled()) {
            senders.get(place).responses().forEach(outputs -> responses.add(LocalTensors.copies(outputs)));
        } else {
            Map<String, Tensor> outputs = new LinkedHashMap<>(LocalTensors.copies(request.outputs()));
            outputs.putAll(LocalTensors.parts(settings, batch, requests, place));
            responses.add(outputs);
        }
        if (!nulls.contains(place)) {
            responses.forEach(outputs -> LocalTensors.check(
                    settings, LocalTensors.items(settings, examples.get(place).inputs()), outputs));
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

    /** Frees everything as the server does, and fails if something is open unless the execution failed already. */
    private void close(FakeBatch batch, Optional<Throwable> violation) {
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
