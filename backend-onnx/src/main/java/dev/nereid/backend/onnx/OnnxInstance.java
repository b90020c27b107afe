package dev.nereid.backend.onnx;

import dev.nereid.backend.natives.Cancellation;
import dev.nereid.backend.onnx.ort.OrtException;
import dev.nereid.backend.onnx.ort.OrtExecution;
import dev.nereid.backend.onnx.ort.OrtValue;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/**
 * An instance of a model: executes one batch after another. Confined to the instance's thread, except the cancellation
 * of requests, which {@link RunCancellation} receives on any thread.
 *
 * <p>Inputs are passed without a copy. Outputs with a static shape are written into memory of the server, others are
 * read from memory of ONNX Runtime, which is freed when the server has read them. On a GPU, ONNX Runtime copies inputs
 * and outputs that {@link OnnxMemory} places on the host, and a run ends when the GPU has written the outputs.
 *
 * <p>Only requested outputs are fetched and returned. Others are computed too: the published builds of ONNX Runtime run
 * the whole graph for any fetched outputs, and only its builds for training can run the part of it that leads to the
 * fetched outputs.
 */
final class OnnxInstance implements ModelInstance {
    private static final long[] NO_DIMENSIONS = {};

    private final OnnxSignature signature;
    private final OrtExecution execution;
    private final OnnxMemory memory;

    OnnxInstance(OnnxSignature signature, OrtExecution execution, OnnxMemory memory) {
        this.signature = signature;
        this.execution = execution;
        this.memory = memory;
    }

    @Override
    public void execute(Batch batch) {
        long runId = execution.begin();
        RunCancellation cancellation = new RunCancellation(batch.requests(), execution, runId);
        try {
            cancellation.watch();
            if (!cancellation.isComplete()) {
                run(batch);
            }
        } catch (OrtException e) {
            if (!cancellation.isComplete()) {
                throw OnnxErrors.of(e);
            }
        } finally {
            execution.end();
        }
        if (cancellation.isComplete()) {
            Cancellation.fail(batch);
        }
    }

    private void run(Batch batch) throws OrtException {
        boolean onDevice = passInputs(batch);
        Set<String> requested = batch.requestedOutputs();
        Map<String, Tensor> shared = new HashMap<>(0);
        for (String name : requested) {
            request(signature.output(name), batch, shared, onDevice);
        }
        for (OnnxSignature.Output state : signature.states()) {
            if (!requested.contains(state.name())) {
                requestState(state, batch);
            }
        }
        batch.inputsRead();
        execution.run();
        batch.outputsComputed();
        for (String name : requested) {
            OnnxSignature.Output output = signature.output(name);
            if (output.staticShape().isEmpty()) {
                take(output, batch, shared);
            }
        }
        for (OnnxSignature.Output state : signature.states()) {
            Tensor output = shared.get(state.name());
            if (output != null) {
                batch.state(state.name()).put(output); // the client gets it too
            } else if (state.staticShape().isEmpty()) {
                takeState(state, batch);
            }
        }
    }

    /** Returns whether there are inputs, and all lie on the device of the instance. */
    private boolean passInputs(Batch batch) throws OrtException {
        boolean onDevice = !batch.inputs().isEmpty();
        for (String name : batch.inputs()) {
            OnnxSignature.Input input = signature.input(name);
            Tensor tensor = memory.gather(batch, name);
            if (tensor.place().isHost()) {
                execution.input(input.index(), tensor.data(), shape(input, tensor));
                onDevice = false;
            } else {
                execution.inputOnDevice(input.index(), tensor.data(), shape(input, tensor));
            }
        }
        return onDevice;
    }

    private static long[] shape(OnnxSignature.Input input, Tensor tensor) {
        if (input.isScalar()) {
            return NO_DIMENSIONS;
        }
        return input.isFlat()
                ? new long[] {tensor.shape().elementCount()}
                : tensor.shape().toArray();
    }

    private boolean isState(String output) {
        for (OnnxSignature.Output state : signature.states()) {
            if (state.name().equals(output)) {
                return true;
            }
        }
        return false;
    }

    private void requestState(OnnxSignature.Output state, Batch batch) throws OrtException {
        Optional<Shape> shape = signature.shape(state, batch.size());
        if (shape.isEmpty()) {
            execution.output(state.index());
            return;
        }
        Tensor target = batch.state(state.name()).allocate(state.type(), shape.get());
        execution.output(
                state.index(),
                target.data(),
                state.scalarShape().isPresent() ? NO_DIMENSIONS : shape.get().toArray());
    }

    private void takeState(OnnxSignature.Output state, Batch batch) throws OrtException {
        OrtValue value = execution.takeOutput(state.index());
        try {
            Shape actual = Shape.of(value.shape());
            Shape shape = actual.rank() == 0 ? state.scalarShape().orElse(actual) : actual;
            if (state.type() == DataType.BYTES) {
                value.copyStrings(batch.state(state.name())
                        .allocateBytes(shape, value.stringBytes())
                        .data());
                value.close();
                return;
            }
            batch.state(state.name()).put(Tensor.of(state.type(), shape, value.data()), value::close);
        } catch (OrtException | RuntimeException e) {
            value.close(); // does nothing if the server has done so already
            throw e;
        }
    }

    private void request(OnnxSignature.Output output, Batch batch, Map<String, Tensor> shared, boolean onDevice)
            throws OrtException {
        Optional<Shape> shape = signature.shape(output, batch.size());
        if (shape.isEmpty()) {
            execution.output(output.index());
            return;
        }
        boolean isState = isState(output.name());
        boolean staysThere = !isState && (onDevice || memory.takesOutput(batch, output.name()));
        Tensor target = memory.allocate(batch, output, shape.get(), staysThere);
        if (isState) {
            shared.put(output.name(), target);
        }
        long[] dims =
                output.scalarShape().isPresent() ? NO_DIMENSIONS : shape.get().toArray();
        if (target.place().isHost()) {
            execution.output(output.index(), target.data(), dims);
        } else {
            execution.outputOnDevice(output.index(), target.data(), dims);
        }
    }

    private void take(OnnxSignature.Output output, Batch batch, Map<String, Tensor> shared) throws OrtException {
        OrtValue value = execution.takeOutput(output.index());
        try {
            Shape actual = Shape.of(value.shape());
            Shape shape = actual.rank() == 0 ? output.scalarShape().orElse(actual) : actual;
            if (output.type() == DataType.BYTES) {
                Tensor target = batch.allocateBytes(output.name(), shape, value.stringBytes());
                value.copyStrings(target.data());
                if (isState(output.name())) {
                    shared.put(output.name(), target);
                }
                value.close();
                return;
            }
            Tensor tensor = Tensor.of(output.type(), shape, value.data());
            batch.put(output.name(), tensor, value::close);
            if (isState(output.name())) {
                shared.put(output.name(), tensor);
            }
        } catch (OrtException | RuntimeException e) {
            value.close(); // does nothing if the server has done so already
            throw e;
        }
    }

    @Override
    public void close() {
        execution.close();
    }
}
