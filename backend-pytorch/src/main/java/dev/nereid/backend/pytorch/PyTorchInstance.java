package dev.nereid.backend.pytorch;

import dev.nereid.backend.natives.Cancellation;
import dev.nereid.backend.pytorch.presets.TorchException;
import dev.nereid.backend.pytorch.presets.TorchExecution;
import dev.nereid.backend.pytorch.presets.TorchOutput;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;

/**
 * An instance of a model: executes one batch after another. Confined to the instance's thread.
 *
 * <p>Inputs are passed without a copy. Outputs are read from memory of PyTorch, which is freed when the server has read
 * them; an output that lies in an input is recognized by the server, which keeps the input.
 *
 * <p>An execution cannot be interrupted: a batch is not begun if all its requests are cancelled.
 */
final class PyTorchInstance implements ModelInstance {
    /** The number of executions on a large stack, should all of them fail. */
    private static final int MAX_ATTEMPTS = 10;

    private final PyTorchSignature signature;
    private final boolean batches;
    private final Set<String> splitOutputs;
    private final TorchExecution execution;
    private final Runnable whenClosed;
    private int compilingRuns;
    private int attempts;

    /**
     * Creates an instance, which owns the execution. In the first {@code compilingRuns} executions PyTorch may compile
     * the script, which needs a large stack.
     */
    PyTorchInstance(
            ModelSettings settings,
            PyTorchSignature signature,
            TorchExecution execution,
            int compilingRuns,
            Runnable whenClosed) {
        this.signature = signature;
        this.execution = execution;
        this.compilingRuns = compilingRuns;
        this.whenClosed = whenClosed;
        batches = settings.batches();
        splitOutputs = settings.batchOutputs().stream()
                .flatMap(output -> output.names().stream())
                .collect(Collectors.toUnmodifiableSet());
    }

    @Override
    public void execute(Batch batch) {
        if (Cancellation.failsAll(batch)) {
            return;
        }
        List<Tensor> inputs = new ArrayList<>(signature.inputs().size());
        for (String name : signature.inputs()) {
            inputs.add(batch.gather(name));
        }
        batch.inputsRead();
        List<TorchOutput> values = run(inputs);
        batch.outputsComputed();
        try (Result result = new Result(values)) {
            for (PyTorchSignature.Output output : signature.outputs()) {
                result.add(output, batch);
            }
            result.put(batch);
        }
    }

    private List<TorchOutput> run(List<Tensor> inputs) {
        if (compilingRuns == 0 || attempts == MAX_ATTEMPTS) {
            return call(inputs);
        }
        attempts++;
        List<TorchOutput> values = LargeStack.call(() -> call(inputs));
        compilingRuns--; // an execution that fails may have compiled nothing
        return values;
    }

    private List<TorchOutput> call(List<Tensor> inputs) {
        try {
            return execution.run(inputs);
        } catch (TorchException e) {
            throw PyTorchErrors.ofExecution(e);
        }
    }

    /** The values of one execution, of which each is closed after its last use. Confined to the execution. */
    private final class Result implements AutoCloseable {
        private final List<TorchOutput> values;
        private final AtomicInteger[] uses;
        private final List<PyTorchSignature.Output> wanted = new ArrayList<>();
        private final List<Integer> indices = new ArrayList<>();

        Result(List<TorchOutput> values) {
            this.values = values;
            uses = new AtomicInteger[values.size()];
            for (int i = 0; i < uses.length; i++) {
                uses[i] = new AtomicInteger(1); // of this object
            }
        }

        /** Checks an output, whether it is requested or not. */
        void add(PyTorchSignature.Output output, Batch batch) {
            int index = ResultChecks.indexOf(output, values);
            ResultChecks.check(output, values.get(index));
            if (output.isState() || batch.requestedOutputs().contains(output.name())) {
                wanted.add(output);
                indices.add(index);
            }
        }

        void put(Batch batch) {
            for (int i = 0; i < wanted.size(); i++) {
                PyTorchSignature.Output output = wanted.get(i);
                TorchOutput value = values.get(indices.get(i));
                if (value.kind() == TorchOutput.Kind.STRINGS) {
                    putStrings(output, value, batch);
                } else {
                    putTensor(output, indices.get(i), batch);
                }
            }
        }

        private void putTensor(PyTorchSignature.Output output, int index, Batch batch) {
            TorchOutput value = values.get(index);
            Shape shape = value.shape();
            long rows = shape.rank() == 0 ? 0 : shape.dim(0);
            if (!batches || splitOutputs.contains(output.name()) || rows == batch.size()) {
                put(output, tensor(value), batch, use(index));
            } else if (rows > batch.size()) { // the rest is dropped
                put(output, slice(value, 0, batch.size()), batch, use(index));
            } else {
                putRows(output, index, batch);
            }
        }

        private void put(PyTorchSignature.Output output, Tensor tensor, Batch batch, Runnable release) {
            if (output.isState()) {
                batch.state(output.name()).put(tensor, release);
            } else {
                batch.put(output.name(), tensor, release);
            }
        }

        /** Passes an output that has fewer rows than the batch: requests that find none fail. */
        private void putRows(PyTorchSignature.Output output, int index, Batch batch) {
            TorchOutput value = values.get(index);
            int start = 0;
            for (InferenceRequest request : batch.requests()) {
                int end = start + request.batchSize();
                if (end > value.shape().dim(0)) {
                    request.fail(tooFewRows(output, value, request, end));
                } else if (output.isState()) {
                    request.state(output.name()).put(slice(value, start, end), use(index));
                } else {
                    request.response().put(output.name(), slice(value, start, end), use(index));
                }
                start = end;
            }
        }

        private void putStrings(PyTorchSignature.Output output, TorchOutput value, Batch batch) {
            int count = (int) value.shape().dim(0);
            int rows = batches ? Math.min(count, batch.size()) : count;
            if (batches && rows < batch.size()) {
                putStringRows(output, value, batch);
                return;
            }
            long bytes = value.stringBytes(0, rows);
            Tensor target = output.isState()
                    ? batch.state(output.name()).allocateBytes(stateShape(rows), bytes)
                    : batch.allocateBytes(output.name(), Shape.of(rows), bytes);
            value.copyStrings(0, rows, target.data());
        }

        private void putStringRows(PyTorchSignature.Output output, TorchOutput value, Batch batch) {
            int start = 0;
            for (InferenceRequest request : batch.requests()) {
                int end = start + request.batchSize();
                if (end > value.shape().dim(0)) {
                    request.fail(tooFewRows(output, value, request, end));
                } else {
                    long bytes = value.stringBytes(start, end);
                    Tensor target = output.isState()
                            ? request.state(output.name()).allocateBytes(stateShape(end - start), bytes)
                            : request.response().allocateBytes(output.name(), Shape.of(end - start), bytes);
                    value.copyStrings(start, end, target.data());
                }
                start = end;
            }
        }

        /** A state has no reshape that takes away its one dimension: each item has one text. */
        private Shape stateShape(int rows) {
            return batches ? Shape.of(rows, 1) : Shape.of(rows);
        }

        private Runnable use(int index) {
            TorchOutput value = values.get(index);
            AtomicInteger count = uses[index];
            count.incrementAndGet();
            return () -> {
                if (count.decrementAndGet() == 0) {
                    value.close();
                }
            };
        }

        @Override
        public void close() {
            for (int i = 0; i < uses.length; i++) {
                if (uses[i].decrementAndGet() == 0) {
                    values.get(i).close();
                }
            }
        }
    }

    private static Tensor tensor(TorchOutput value) {
        return Tensor.of(value.type().orElseThrow(), value.shape(), value.data());
    }

    private static Tensor slice(TorchOutput value, long start, long end) {
        Shape shape = value.shape();
        long[] dims = shape.toArray();
        dims[0] = end - start;
        MemorySegment data = value.data();
        long rowBytes = shape.dim(0) == 0 ? 0 : data.byteSize() / shape.dim(0);
        return Tensor.of(
                value.type().orElseThrow(),
                Shape.of(dims),
                data.byteSize() == 0 ? data : data.asSlice(start * rowBytes, (end - start) * rowBytes));
    }

    private static BackendException tooFewRows(
            PyTorchSignature.Output output, TorchOutput value, InferenceRequest request, int expected) {
        String id = request.id().isEmpty() ? "<id_unknown>" : request.id();
        return new BackendException(
                ErrorCode.UNSUPPORTED,
                "[request id: " + id + "] failed to split the output " + (output.isState() ? "state " : "") + "tensor '"
                        + output.name() + "' in responses: expected batch size of at least " + expected
                        + " in model output, got " + value.shape().dim(0));
    }

    @Override
    public void close() {
        execution.close();
        whenClosed.run();
    }
}
