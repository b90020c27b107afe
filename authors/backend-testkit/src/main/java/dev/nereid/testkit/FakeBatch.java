package dev.nereid.testkit;

import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.BatchOutput;
import dev.nereid.spi.DataType;
import dev.nereid.spi.DeferredExecution;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Fence;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.SequenceState;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * A {@link Batch} for tests of backends. Confined to the test's thread, except the handle of a deferred execution.
 *
 * <p>A batch of one request passes the tensors of the request; several requests are joined in memory of the pool, which
 * detects leaks. Ragged inputs are flat, and inputs that the configuration derives are as from the server. {@link
 * #close} finishes the execution, as the server does after the backend returns.
 *
 * <p>Outputs that do not fit the configuration fail the test at once. Requested outputs that the backend omits, while it
 * returns others, fail it at the close: the server would respond without them, and log a warning.
 */
public final class FakeBatch implements Batch, AutoCloseable {
    private final ModelSettings settings;
    private final BatchMemory memory;
    private final List<FakeRequest> requests;
    private final JoinedInputs inputs;
    private final Map<String, FakeSequenceState> states = new LinkedHashMap<>();
    private final Set<MemoryPlace> devices = new HashSet<>();

    /** The places in which no memory is left. */
    private final Set<MemoryPlace> exhausted = new HashSet<>();

    /** The places in which the requests take their outputs. */
    private final Set<MemoryPlace> taken = new HashSet<>();

    private final Map<String, Tensor> outputs = new LinkedHashMap<>();
    private final Set<String> allocated = new LinkedHashSet<>();
    private final List<String> marks = new ArrayList<>();
    private boolean checksOutputs = true;
    private Optional<RecordedExecution> deferred = Optional.empty();

    /**
     * Creates a batch.
     *
     * @param memory allocates memory for joined inputs and for outputs
     * @param requests the requests, at least one
     */
    public FakeBatch(ModelSettings settings, LeakCheckingMemory memory, FakeRequest... requests) {
        this.settings = settings;
        this.memory = new BatchMemory(memory);
        this.requests = List.of(requests);
        inputs = new JoinedInputs(settings, this.requests, this.memory);
    }

    /**
     * Returns the outputs of the backend for the whole batch, until the batch is closed.
     *
     * @return the outputs by name, in the order in which they came
     */
    public Map<String, Tensor> outputs() {
        return Map.copyOf(outputs);
    }

    /**
     * Returns the outputs that the backend wrote into memory of the batch. Outputs in memory of the backend are not
     * among them.
     */
    public Set<String> allocated() {
        return Set.copyOf(allocated);
    }

    /**
     * Returns the progress that the backend reported.
     *
     * @return the names of the methods {@link #inputsRead} and {@link #outputsComputed} in the order of their calls
     */
    public List<String> marks() {
        return List.copyOf(marks);
    }

    /**
     * Accepts missing outputs and outputs that do not fit the configuration. It serves tests of models with a wrong
     * configuration.
     */
    public FakeBatch withWrongOutputs() {
        checksOutputs = false;
        return this;
    }

    /**
     * Adds memory of a device. It is memory of the host here, labeled with its place, so that tests can read it.
     *
     * @param place a place in which the backend may gather inputs and allocate outputs
     */
    public FakeBatch withDevice(MemoryPlace place) {
        devices.add(place);
        return this;
    }

    /**
     * Takes all memory of a device: allocations and copies there fail with {@link ErrorCode#UNAVAILABLE}.
     *
     * @param place the place, which the batch gets too
     */
    public FakeBatch withoutMemoryIn(MemoryPlace place) {
        exhausted.add(place);
        return withDevice(place);
    }

    private void checkMemory(MemoryPlace place) {
        if (exhausted.contains(place)) {
            throw new BackendException(ErrorCode.UNAVAILABLE, place + ": no memory left (as the test says)");
        }
    }

    /**
     * Makes all requests take their outputs in memory of a device.
     *
     * @param place the place, which the batch gets too
     */
    public FakeBatch takingOutputsIn(MemoryPlace place) {
        taken.add(place);
        return withDevice(place);
    }

    /**
     * Returns the new value of a state for the whole batch, until the batch is closed.
     *
     * @param output the name of the state's output
     * @return the value, or empty if the backend wrote none
     */
    public Optional<Tensor> writtenState(String output) {
        return Optional.ofNullable(states.get(output)).flatMap(FakeSequenceState::value);
    }

    @Override
    public List<InferenceRequest> requests() {
        return List.copyOf(requests);
    }

    @Override
    public int size() {
        return requests.stream().mapToInt(FakeRequest::batchSize).sum();
    }

    @Override
    public Set<String> inputs() {
        return inputs.names();
    }

    @Override
    public Set<String> requestedOutputs() {
        Set<String> wanted = new LinkedHashSet<>();
        for (TensorSpec output : settings.outputs()) {
            if (requests.stream().anyMatch(request -> request.requestedOutputs().contains(output.name()))) {
                wanted.add(output.name());
            }
        }
        return wanted;
    }

    @Override
    public Tensor gather(String input) {
        return inputs.gather(input);
    }

    @Override
    public Tensor allocate(String output, DataType type, Shape shape) {
        return allocate(output, type, shape, shape.byteSize(type));
    }

    @Override
    public Tensor allocateBytes(String output, Shape shape, long byteSize) {
        return allocate(output, DataType.BYTES, shape, byteSize);
    }

    private Tensor allocate(String output, DataType type, Shape shape, long byteSize) {
        return allocated(
                output, Tensor.of(type, shape, memory.allocate(byteSize).segment()));
    }

    private Tensor allocated(String output, Tensor tensor) {
        add(output, tensor);
        allocated.add(output);
        return tensor;
    }

    @Override
    public Tensor gather(String input, MemoryPlace place) {
        checkMemory(place);
        return devices.contains(place) ? inputs.gather(input, place) : Batch.super.gather(input, place);
    }

    @Override
    public Tensor allocate(String output, DataType type, Shape shape, MemoryPlace place) {
        checkMemory(place);
        if (!devices.contains(place)) {
            return Batch.super.allocate(output, type, shape, place);
        }
        TensorBuffer buffer = memory.allocate(shape.byteSize(type));
        return allocated(output, Tensor.of(type, shape, buffer.segment(), place));
    }

    @Override
    public boolean takesOutput(String output, MemoryPlace place) {
        return taken.contains(place) && requestedOutputs().contains(output);
    }

    @Override
    public void fence(String output, Fence fence) {
        if (!allocated.contains(output)) {
            throw new BackendException(ErrorCode.INTERNAL, "output '" + output + "': not allocated");
        }
        outputs.computeIfPresent(output, (name, tensor) -> tensor.withFence(fence));
    }

    @Override
    public SequenceState state(String output) {
        if (!requests.getFirst().hasState(output)) {
            return Batch.super.state(output);
        }
        return states.computeIfAbsent(output, name -> new FakeSequenceState(name, memory.source(), exhausted));
    }

    @Override
    public void put(String output, Tensor tensor, Runnable release) {
        memory.add(release);
        add(output, tensor);
    }

    private void add(String output, Tensor tensor) {
        Optional<BatchOutput> cut = settings.batchOutputs().stream()
                .filter(candidate -> candidate.names().contains(output))
                .findFirst();
        if (cut.isPresent()) {
            checkCut(output, cut.get(), tensor);
        } else {
            checkItems(output, tensor);
        }
        checkFits(output, tensor);
        if (outputs.putIfAbsent(output, tensor) != null) {
            throw new BackendException(ErrorCode.INTERNAL, "output '" + output + "': returned twice");
        }
    }

    private void checkFits(String output, Tensor tensor) {
        TensorSpec spec = settings.output(output)
                .orElseThrow(() -> new AssertionError("output '" + output + "': not in the configuration"));
        boolean cut = settings.batchOutputs().stream()
                .anyMatch(candidate -> candidate.names().contains(output));
        boolean batched = settings.batches() && !spec.is(TensorSpec.Trait.SHAPE_TENSOR);
        Shape expected = batched ? spec.backendDims().prepend(Shape.VARIABLE) : spec.backendDims();
        if (checksOutputs && !memory.isExhausted() && !cut && !expected.accepts(tensor.shape())) {
            throw new AssertionError(
                    "output '" + output + "': shape " + tensor.shape() + " (expected: " + expected + ")");
        }
    }

    private void checkComplete() {
        Set<String> missing = new LinkedHashSet<>(requestedOutputs());
        missing.removeAll(outputs.keySet());
        boolean failed = requests.stream().anyMatch(request -> request.failure().isPresent());
        if (checksOutputs && !memory.isExhausted() && !outputs.isEmpty() && !missing.isEmpty() && !failed) {
            throw new AssertionError("outputs: " + missing + " missing (expected: all requested outputs)");
        }
    }

    private void checkItems(String output, Tensor tensor) {
        boolean fits = !settings.batches()
                || (tensor.shape().rank() > 0 && tensor.shape().dim(0) == size());
        if (!fits) {
            throw new BackendException(
                    ErrorCode.INTERNAL,
                    "output '" + output + "': shape " + tensor.shape() + " (expected: first dimension " + size() + ")");
        }
    }

    /** An output that the server splits has as many elements as its parts together. */
    private void checkCut(String output, BatchOutput cut, Tensor tensor) {
        Shape dims = settings.output(output).orElseThrow().backendDims();
        Shape whole = settings.batches() ? dims.prepend(Shape.VARIABLE) : dims;
        long expected = 0;
        for (Tensor source : inputs.parts(cut.source())) {
            long[] part = whole.toArray();
            for (int i = 0; i < part.length; i++) {
                part[i] = part[i] == Shape.VARIABLE ? source.shape().dim(i) : part[i];
            }
            expected += Shape.of(part).elementCount();
        }
        if (tensor.shape().elementCount() != expected) {
            throw new BackendException(
                    ErrorCode.INTERNAL,
                    "output '" + output + "': shape " + tensor.shape() + " (expected: " + expected + " elements)");
        }
    }

    @Override
    public void inputsRead() {
        marks.add("inputsRead");
    }

    @Override
    public void outputsComputed() {
        marks.add("outputsComputed");
    }

    @Override
    public DeferredExecution defer() {
        if (deferred.isPresent()) {
            throw new IllegalStateException("defer: called a second time");
        }
        RecordedExecution execution = new RecordedExecution(requests);
        deferred = Optional.of(execution);
        return execution;
    }

    /**
     * Says whether the backend deferred the execution.
     *
     * @return whether it called {@link #defer}
     */
    public boolean isDeferred() {
        return deferred.isPresent();
    }

    /**
     * Waits until a deferred execution has ended.
     *
     * @param timeout the limit on the wait
     * @return whether it has ended; {@code true} if the execution is not deferred
     * @throws InterruptedException if the thread is interrupted
     */
    public boolean awaitEnd(Duration timeout) throws InterruptedException {
        return deferred.isEmpty() || deferred.get().await(timeout);
    }

    /**
     * Finishes the execution: the requests count as complete, and all memory is released.
     *
     * @throws AssertionError if outputs are missing, or if the execution was deferred and has not ended
     */
    @Override
    public void close() {
        try {
            if (deferred.filter(RecordedExecution::isOpen).isPresent()) {
                throw new AssertionError("deferred execution: open (expected: complete)");
            }
            checkComplete();
        } finally {
            requests.forEach(FakeRequest::finish);
            requests.forEach(FakeRequest::release);
            states.values().forEach(FakeSequenceState::close);
            memory.release();
            outputs.clear();
        }
    }

    /** The handle of a deferred execution of a {@link FakeBatch}. Safe for use by any thread. */
    private static final class RecordedExecution implements DeferredExecution {
        private final List<FakeRequest> requests;
        private final AtomicBoolean ended = new AtomicBoolean();
        private final CountDownLatch end = new CountDownLatch(1);

        RecordedExecution(List<FakeRequest> requests) {
            this.requests = requests;
        }

        boolean isOpen() {
            return end.getCount() > 0;
        }

        boolean await(Duration timeout) throws InterruptedException {
            return end.await(timeout.toNanos(), TimeUnit.NANOSECONDS);
        }

        @Override
        public void complete() {
            if (ended.compareAndSet(false, true)) {
                requests.forEach(FakeRequest::finish);
                end.countDown();
            }
        }

        @Override
        public void fail(BackendException error) {
            if (ended.compareAndSet(false, true)) {
                requests.forEach(request -> request.fail(error));
                end.countDown();
            }
        }
    }
}
