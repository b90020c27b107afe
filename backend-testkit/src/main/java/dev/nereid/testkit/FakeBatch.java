package dev.nereid.testkit;

import dev.nereid.api.InferenceException;
import dev.nereid.api.TensorBuffer;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
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
import java.util.Set;

/**
 * A batch for a backend that works on batches as a whole. Confined to the test's thread.
 *
 * <p>A batch of one request hands out the request's own tensors; several are joined in memory taken from the given memory,
 * which sees whether all of it comes back. {@link #close} finishes the execution, as the
 * server does after a return of the backend.
 */
public final class FakeBatch implements Batch, AutoCloseable {
    private final ModelSettings settings;
    private final LeakCheckingMemory memory;
    private final List<FakeRequest> requests;
    private final Map<String, Tensor> outputs = new LinkedHashMap<>();
    private final Set<String> allocated = new LinkedHashSet<>();
    private final List<Runnable> releases = new ArrayList<>();
    private final List<String> marks = new ArrayList<>();

    /**
     * Creates a batch.
     *
     * @param settings the configuration of the model
     * @param memory gives memory for joined inputs and for outputs
     * @param requests the requests, at least one
     */
    public FakeBatch(ModelSettings settings, LeakCheckingMemory memory, FakeRequest... requests) {
        this.settings = settings;
        this.memory = memory;
        this.requests = List.of(requests);
    }

    /**
     * Returns the outputs that the backend gave for the whole batch, until the batch is closed.
     *
     * @return the outputs by name, in the order in which they came
     */
    public Map<String, Tensor> outputs() {
        return Map.copyOf(outputs);
    }

    /**
     * Returns which outputs the backend wrote into memory of the batch, rather than giving its own.
     *
     * @return the names
     */
    public Set<String> allocated() {
        return Set.copyOf(allocated);
    }

    /**
     * Returns what the backend told of its progress.
     *
     * @return the names of the methods {@link #inputsRead} and {@link #outputsComputed} in the order of their calls
     */
    public List<String> marks() {
        return List.copyOf(marks);
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
        return new LinkedHashSet<>(requests.getFirst().inputs());
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
        List<Tensor> parts = new ArrayList<>();
        for (FakeRequest request : requests) {
            parts.add(request.input(input)
                    .orElseThrow(() ->
                            new BackendException(ErrorCode.INVALID_ARGUMENT, "input '" + input + "': not given")));
        }
        return parts.size() == 1 ? parts.getFirst() : join(parts);
    }

    private Tensor join(List<Tensor> parts) throws BackendException {
        Tensor first = parts.getFirst();
        long items = parts.stream().mapToLong(part -> part.shape().dim(0)).sum();
        TensorBuffer joined = take(parts.stream().mapToLong(Tensor::byteSize).sum());
        long offset = 0;
        for (Tensor part : parts) {
            MemorySegment.copy(part.data(), 0, joined.segment(), offset, part.byteSize());
            offset += part.byteSize();
        }
        return Tensor.of(first.type(), first.shape().withFirst(items), joined.segment());
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
            throw new BackendException(e.code(), e.publicMessage(), e);
        }
    }

    @Override
    public void scatter(String output, Tensor tensor, Runnable release) throws BackendException {
        releases.add(release);
        add(output, tensor);
    }

    private void add(String output, Tensor tensor) throws BackendException {
        boolean fits = !settings.batches()
                || (tensor.shape().rank() > 0 && tensor.shape().dim(0) == size());
        if (!fits) {
            throw new BackendException(
                    ErrorCode.INTERNAL,
                    "output '" + output + "': shape " + tensor.shape() + " (expected: first dimension " + size() + ")");
        }
        if (outputs.putIfAbsent(output, tensor) != null) {
            throw new BackendException(ErrorCode.INTERNAL, "output '" + output + "': given twice");
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

    /** Finishes the execution: the requests count as answered, and all memory is given back. */
    @Override
    public void close() {
        requests.forEach(FakeRequest::finish);
        releases.forEach(Runnable::run);
        releases.clear();
        outputs.clear();
    }
}
