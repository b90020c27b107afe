package dev.nereid.backend.tensorflow;

import dev.nereid.backend.natives.Cancellation;
import dev.nereid.backend.tensorflow.capi.TfException;
import dev.nereid.backend.tensorflow.capi.TfExecution;
import dev.nereid.backend.tensorflow.capi.TfTensor;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.util.Optional;
import java.util.Set;

/**
 * An instance of a model: executes one batch after another. Confined to the instance's thread.
 *
 * <p>Inputs are passed without a copy where they are aligned. Outputs are read from memory of TensorFlow, which is freed
 * when the server has read them; an output that lies in an input is recognized by the server, which keeps the input.
 *
 * <p>A run cannot be interrupted: a batch is not begun if all its requests are cancelled.
 */
final class TensorFlowInstance implements ModelInstance {
    private static final long[] NO_DIMENSIONS = {};

    private final TensorFlowSignature signature;
    private final TfExecution execution;
    private final FetchSets fetchSets;
    private final boolean copiesInputs;

    /** Creates an instance; inputs are copied if the graph may keep them beyond a run. */
    TensorFlowInstance(
            TensorFlowSignature signature, TfExecution execution, FetchSets fetchSets, boolean copiesInputs) {
        this.signature = signature;
        this.execution = execution;
        this.fetchSets = fetchSets;
        this.copiesInputs = copiesInputs;
    }

    @Override
    public void execute(Batch batch) {
        if (Cancellation.failsAll(batch)) {
            return;
        }
        execution.begin();
        try {
            run(batch);
        } catch (TfException e) {
            throw TensorFlowErrors.of(e);
        } finally {
            execution.end();
        }
    }

    private void run(Batch batch) throws TfException {
        for (String name : batch.inputs()) {
            feed(signature.input(name), batch.gather(name));
        }
        Set<String> requested = batch.requestedOutputs();
        request(requested);
        batch.inputsRead();
        execution.run();
        batch.outputsComputed();
        for (String name : requested) {
            TensorFlowSignature.Output output = signature.output(name);
            Tensor tensor = take(output, batch);
            if (isState(name)) {
                batch.state(name).put(tensor); // the client gets it too
            }
        }
        for (TensorFlowSignature.Output state : signature.states()) {
            if (!requested.contains(state.name())) {
                takeState(state, batch);
            }
        }
    }

    private void feed(TensorFlowSignature.Input input, Tensor tensor) {
        long[] dims = NO_DIMENSIONS;
        if (input.isFlat()) {
            dims = new long[] {tensor.shape().elementCount()};
        } else if (!input.isScalar()) {
            dims = tensor.shape().toArray();
        }
        if (copiesInputs) {
            execution.copiedInput(input.index(), tensor.data(), dims);
        } else {
            execution.input(input.index(), tensor.data(), dims);
        }
    }

    private void request(Set<String> requested) {
        if (fetchSets.accepts(requested)) {
            for (String name : requested) {
                execution.output(signature.output(name).index());
            }
        } else {
            for (TensorFlowSignature.Output output : signature.outputs()) {
                execution.output(output.index());
            }
        }
        for (TensorFlowSignature.Output state : signature.states()) {
            execution.output(state.index());
        }
    }

    private boolean isState(String output) {
        for (TensorFlowSignature.Output state : signature.states()) {
            if (state.name().equals(output)) {
                return true;
            }
        }
        return false;
    }

    private Tensor take(TensorFlowSignature.Output output, Batch batch) {
        TfTensor value = execution.takeOutput(output.index());
        try {
            Shape shape = shape(output, value);
            if (output.type() == DataType.BYTES) {
                Tensor target = batch.allocateBytes(output.name(), shape, value.stringBytes());
                value.copyStrings(target.data());
                value.close();
                return target;
            }
            Tensor tensor = Tensor.of(output.type(), shape, value.data());
            batch.put(output.name(), tensor, value::close);
            return tensor;
        } catch (RuntimeException e) {
            value.close(); // does nothing if the server has done so already
            throw e;
        }
    }

    private void takeState(TensorFlowSignature.Output state, Batch batch) {
        TfTensor value = execution.takeOutput(state.index());
        try {
            Shape shape = shape(state, value);
            if (state.type() == DataType.BYTES) {
                Tensor target = batch.state(state.name()).allocateBytes(shape, value.stringBytes());
                value.copyStrings(target.data());
                value.close();
                return;
            }
            batch.state(state.name()).put(Tensor.of(state.type(), shape, value.data()), value::close);
        } catch (RuntimeException e) {
            value.close(); // does nothing if the server has done so already
            throw e;
        }
    }

    /** Returns the shape of an output; a type that differs from the declared one would be read as another. */
    private static Shape shape(TensorFlowSignature.Output output, TfTensor value) {
        Optional<DataType> type = TensorFlowTensors.dataType(value.type());
        if (!type.equals(Optional.of(output.type()))) {
            throw new BackendException(
                    ErrorCode.INTERNAL,
                    "output '" + output.name() + "': data type " + value.type().text() + " (expected: " + output.type()
                            + ")");
        }
        Shape actual = Shape.of(value.shape());
        return actual.rank() == 0 ? output.scalarShape().orElse(actual) : actual;
    }

    @Override
    public void close() {
        execution.close();
    }
}
