package dev.nereid.backend.onnx;

import dev.nereid.backend.onnx.ort.OrtException;
import dev.nereid.backend.onnx.ort.OrtExecution;
import dev.nereid.backend.onnx.ort.OrtValue;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.util.Optional;

/**
 * An instance of a model: executes one batch after another. Confined to the instance's thread, except the cancellation
 * of requests, which {@link RunCancellation} receives on any thread.
 *
 * <p>Inputs are passed without a copy. Outputs with a static shape are written into memory of the server, others are
 * read from memory of ONNX Runtime, which is freed when the server has read them.
 *
 * <p>Only requested outputs are fetched and returned. Others are computed too: the published builds of ONNX Runtime run
 * the whole graph for any fetched outputs, and only its builds for training can run the part of it that leads to the
 * fetched outputs.
 */
final class OnnxInstance implements ModelInstance {
    private static final long[] NO_DIMENSIONS = {};

    private final OnnxSignature signature;
    private final OrtExecution execution;

    OnnxInstance(OnnxSignature signature, OrtExecution execution) {
        this.signature = signature;
        this.execution = execution;
    }

    @Override
    public void execute(Batch batch) throws BackendException {
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
            failCancelled(batch);
        }
    }

    private void run(Batch batch) throws BackendException, OrtException {
        for (String name : batch.inputs()) {
            OnnxSignature.Input input = signature.input(name);
            Tensor tensor = batch.gather(name);
            execution.input(
                    input.index(),
                    tensor.data(),
                    input.isScalar() ? NO_DIMENSIONS : tensor.shape().toArray());
        }
        for (String name : batch.requestedOutputs()) {
            request(signature.output(name), batch);
        }
        batch.inputsRead();
        execution.run();
        batch.outputsComputed();
        for (String name : batch.requestedOutputs()) {
            OnnxSignature.Output output = signature.output(name);
            if (output.staticShape().isEmpty()) {
                take(output, batch);
            }
        }
    }

    private void request(OnnxSignature.Output output, Batch batch) throws BackendException, OrtException {
        Optional<Shape> shape = signature.shape(output, batch.size());
        if (shape.isEmpty()) {
            execution.output(output.index());
            return;
        }
        Tensor target = batch.allocate(output.name(), output.type(), shape.get());
        execution.output(
                output.index(),
                target.data(),
                output.scalarShape().isPresent() ? NO_DIMENSIONS : shape.get().toArray());
    }

    private void take(OnnxSignature.Output output, Batch batch) throws BackendException, OrtException {
        OrtValue value = execution.takeOutput(output.index());
        try {
            Shape given = Shape.of(value.shape());
            Shape shape = given.rank() == 0 ? output.scalarShape().orElse(given) : given;
            if (output.type() == DataType.BYTES) {
                value.copyStrings(batch.allocateBytes(output.name(), shape, value.stringBytes())
                        .data());
                value.close();
                return;
            }
            batch.scatter(output.name(), Tensor.of(output.type(), shape, value.data()), value::close);
        } catch (BackendException | OrtException | RuntimeException e) {
            value.close(); // does nothing if the server has done so already
            throw e;
        }
    }

    private static void failCancelled(Batch batch) {
        for (InferenceRequest request : batch.requests()) {
            request.fail(new BackendException(ErrorCode.CANCELLED, "request was cancelled"));
        }
    }

    @Override
    public void close() {
        execution.close();
    }
}
