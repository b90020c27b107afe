package dev.nereid.testkit;

import dev.nereid.api.InferenceException;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.BatchInput;
import dev.nereid.spi.BatchOutput;
import dev.nereid.spi.DataType;
import dev.nereid.spi.DeferredExecution;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/**
 * A {@link Batch} for tests of backends. Confined to the test's thread.
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
    private final LeakCheckingMemory memory;
    private final List<FakeRequest> requests;
    private final Map<String, Tensor> derived = new LinkedHashMap<>();
    private final Map<String, Tensor> outputs = new LinkedHashMap<>();
    private final Set<String> allocated = new LinkedHashSet<>();
    private final List<Runnable> releases = new ArrayList<>();
    private final List<String> marks = new ArrayList<>();
    private boolean checksOutputs = true;

    /**
     * Creates a batch.
     *
     * @param settings the configuration of the model
     * @param memory allocates memory for joined inputs and for outputs
     * @param requests the requests, at least one
     */
    public FakeBatch(ModelSettings settings, LeakCheckingMemory memory, FakeRequest... requests) {
        this.settings = settings;
        this.memory = memory;
        this.requests = List.of(requests);
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
     *
     * @return the names
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
     *
     * @return this batch
     */
    public FakeBatch withWrongOutputs() {
        checksOutputs = false;
        return this;
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
        Set<String> inputs = new LinkedHashSet<>(requests.getFirst().inputs());
        for (BatchInput input : settings.batchInputs()) {
            if (requests.getFirst().inputs().contains(input.source())) {
                inputs.addAll(input.names());
            }
        }
        return inputs;
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
    public Tensor gather(String input) throws BackendException {
        for (BatchInput candidate : settings.batchInputs()) {
            if (candidate.names().contains(input)) {
                return derive(input, candidate);
            }
        }
        List<Tensor> parts = parts(input);
        if (is(input, TensorSpec.Trait.RAGGED)) {
            return flat(parts);
        }
        boolean isSingle = parts.size() == 1 || is(input, TensorSpec.Trait.SHAPE_TENSOR);
        return isSingle ? parts.getFirst() : join(parts);
    }

    private List<Tensor> parts(String input) throws BackendException {
        List<Tensor> parts = new ArrayList<>();
        for (FakeRequest request : requests) {
            parts.add(request.input(input)
                    .orElseThrow(() ->
                            new BackendException(ErrorCode.INVALID_ARGUMENT, "input '" + input + "': not given")));
        }
        return parts;
    }

    private boolean is(String input, TensorSpec.Trait trait) {
        return settings.input(input).filter(spec -> spec.is(trait)).isPresent();
    }

    private Tensor derive(String name, BatchInput input) throws BackendException {
        Tensor earlier = derived.get(name);
        if (earlier != null) {
            return earlier;
        }
        List<Shape> sources = parts(input.source()).stream().map(Tensor::shape).toList();
        boolean batched = settings.batches() && !is(input.source(), TensorSpec.Trait.SHAPE_TENSOR);
        Shape shape = DerivedNumbers.shape(input.kind(), sources, batched);
        TensorBuffer buffer = take(shape.byteSize(input.type()));
        DerivedNumbers.write(DerivedNumbers.numbers(input.kind(), sources, batched), input.type(), buffer.segment());
        Tensor tensor = Tensor.of(input.type(), shape, buffer.segment());
        derived.put(name, tensor);
        return tensor;
    }

    private Tensor flat(List<Tensor> parts) throws BackendException {
        Tensor first = parts.getFirst();
        Shape shape = Shape.of(
                parts.stream().mapToLong(part -> part.shape().elementCount()).sum());
        return parts.size() == 1
                ? first.withShape(shape)
                : Tensor.of(first.type(), shape, joined(parts).segment());
    }

    private Tensor join(List<Tensor> parts) throws BackendException {
        Tensor first = parts.getFirst();
        long items = parts.stream().mapToLong(part -> part.shape().dim(0)).sum();
        return Tensor.of(
                first.type(), first.shape().withFirst(items), joined(parts).segment());
    }

    private TensorBuffer joined(List<Tensor> parts) throws BackendException {
        TensorBuffer joined = take(parts.stream().mapToLong(Tensor::byteSize).sum());
        long offset = 0;
        for (Tensor part : parts) {
            MemorySegment.copy(part.data(), 0, joined.segment(), offset, part.byteSize());
            offset += part.byteSize();
        }
        return joined;
    }

    @Override
    public Tensor allocate(String output, DataType type, Shape shape) throws BackendException {
        return allocate(output, type, shape, shape.byteSize(type));
    }

    @Override
    public Tensor allocateBytes(String output, Shape shape, long byteSize) throws BackendException {
        return allocate(output, DataType.BYTES, shape, byteSize);
    }

    private Tensor allocate(String output, DataType type, Shape shape, long byteSize) throws BackendException {
        TensorBuffer buffer = take(byteSize);
        Tensor tensor = Tensor.of(type, shape, buffer.segment());
        add(output, tensor);
        allocated.add(output);
        return tensor;
    }

    private TensorBuffer take(long byteSize) throws BackendException {
        try {
            TensorBuffer buffer = memory.allocate(byteSize);
            releases.add(buffer::close);
            return buffer;
        } catch (InferenceException e) {
            checksOutputs = false; // the execution fails
            throw new BackendException(e.code(), e.publicMessage(), e);
        }
    }

    @Override
    public void scatter(String output, Tensor tensor, Runnable release) throws BackendException {
        releases.add(release);
        add(output, tensor);
    }

    private void add(String output, Tensor tensor) throws BackendException {
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
        if (checksOutputs && !cut && !expected.accepts(tensor.shape())) {
            throw new AssertionError(
                    "output '" + output + "': shape " + tensor.shape() + " (expected: " + expected + ")");
        }
    }

    private void checkComplete() {
        Set<String> missing = new LinkedHashSet<>(requestedOutputs());
        missing.removeAll(outputs.keySet());
        boolean failed = requests.stream().anyMatch(request -> request.failure().isPresent());
        if (checksOutputs && !outputs.isEmpty() && !missing.isEmpty() && !failed) {
            throw new AssertionError("outputs: " + missing + " missing (expected: all requested outputs)");
        }
    }

    private void checkItems(String output, Tensor tensor) throws BackendException {
        boolean fits = !settings.batches()
                || (tensor.shape().rank() > 0 && tensor.shape().dim(0) == size());
        if (!fits) {
            throw new BackendException(
                    ErrorCode.INTERNAL,
                    "output '" + output + "': shape " + tensor.shape() + " (expected: first dimension " + size() + ")");
        }
    }

    /** An output that the server splits has as many elements as its parts together. */
    private void checkCut(String output, BatchOutput cut, Tensor tensor) throws BackendException {
        Shape dims = settings.output(output).orElseThrow().backendDims();
        Shape whole = settings.batches() ? dims.prepend(Shape.VARIABLE) : dims;
        long expected = 0;
        for (Tensor source : parts(cut.source())) {
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
        throw new AssertionError("a deferred execution (expected: one that ends with the return)");
    }

    /**
     * Finishes the execution: the requests count as complete, and all memory is released.
     *
     * @throws AssertionError if outputs are missing
     */
    @Override
    public void close() {
        try {
            checkComplete();
        } finally {
            finish();
        }
    }

    private void finish() {
        requests.forEach(FakeRequest::finish);
        releases.forEach(Runnable::run);
        releases.clear();
        derived.clear();
        outputs.clear();
    }
}
