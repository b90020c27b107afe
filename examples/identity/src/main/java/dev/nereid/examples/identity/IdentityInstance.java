package dev.nereid.examples.identity;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.LongSupplier;

/**
 * Returns the inputs of each request as its outputs, without a copy. The output of an optional input that is left out
 * has zeros, or empty byte strings. Confined to the instance's thread.
 */
final class IdentityInstance implements ModelInstance {
    private final IdentityModel model;
    private final long delayNanos;
    private final LongSupplier nanoTime;

    /**
     * Creates an instance.
     *
     * @param number the number of the instance, from 0
     */
    IdentityInstance(IdentityModel model, int number, LongSupplier nanoTime) {
        this.model = model;
        this.delayNanos = model.delays().executionNanos(number);
        this.nanoTime = nanoTime;
    }

    @Override
    public void execute(Batch batch) {
        if (delayNanos > 0) {
            IdentityDelays.await(delayNanos, nanoTime, "execution");
        }
        List<InferenceRequest> requests = batch.requests();
        for (int i = 0; i < requests.size(); i++) {
            InferenceRequest request = requests.get(i);
            try {
                respond(request);
            } catch (BackendException e) {
                request.fail(e);
            }
        }
    }

    private void respond(InferenceRequest request) {
        List<String> names = request.inputs();
        for (int i = 0; i < names.size(); i++) {
            String output = model.outputs().get(names.get(i));
            Optional<Tensor> input = request.input(names.get(i));
            if (output != null && input.isPresent()) {
                request.response().put(output, input.get(), IdentityInstance::noRelease);
            }
        }
        if (!model.defaults().isEmpty()) {
            putDefaults(request);
        }
    }

    private void putDefaults(InferenceRequest request) {
        for (Map.Entry<String, TensorSpec> entry : model.defaults().entrySet()) {
            TensorSpec output = entry.getValue();
            if (request.input(entry.getKey()).isEmpty()
                    && request.requestedOutputs().contains(output.name())) {
                allocate(request, output).data().fill((byte) 0);
            }
        }
    }

    private Tensor allocate(InferenceRequest request, TensorSpec output) {
        Shape shape = shape(output.backendDims(), request.batchSize());
        try {
            return output.type().isFixedSize()
                    ? request.response().allocate(output.name(), output.type(), shape)
                    : request.response()
                            .allocateBytes(
                                    output.name(), shape, Math.multiplyExact(shape.elementCount(), Integer.BYTES));
        } catch (ArithmeticException e) {
            throw new BackendException(
                    ErrorCode.INVALID_ARGUMENT,
                    "output '" + output.name() + "': shape " + shape + " (expected: a size that fits 64 bits)",
                    e);
        }
    }

    private Shape shape(Shape dims, int batchSize) {
        long[] fixed = new long[dims.rank()];
        for (int i = 0; i < fixed.length; i++) {
            fixed[i] = dims.dim(i) == Shape.VARIABLE ? 1 : dims.dim(i);
        }
        Shape shape = Shape.of(fixed);
        return model.batches() ? shape.prepend(batchSize) : shape;
    }

    /** Inputs belong to the server, which keeps them until the response was sent. */
    private static void noRelease() {}
}
