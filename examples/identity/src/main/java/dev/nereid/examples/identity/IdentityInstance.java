package dev.nereid.examples.identity;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.Tensor;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongSupplier;

/** Returns the inputs of each request as its outputs, without a copy. Confined to the instance's thread. */
final class IdentityInstance implements ModelInstance {
    private final IdentityModel model;
    private final LongSupplier nanoTime;

    IdentityInstance(IdentityModel model, LongSupplier nanoTime) {
        this.model = model;
        this.nanoTime = nanoTime;
    }

    @Override
    public void execute(Batch batch) throws BackendException {
        if (model.delayNanos() > 0) {
            await(model.delayNanos());
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

    private void respond(InferenceRequest request) throws BackendException {
        List<String> names = request.inputs();
        for (int i = 0; i < names.size(); i++) {
            String output = model.outputs().get(names.get(i));
            Optional<Tensor> input = request.input(names.get(i));
            if (output != null && input.isPresent()) {
                request.response().put(output, input.get(), IdentityInstance::noRelease);
            }
        }
    }

    /** Simulates a model that computes: waits, unless the thread is interrupted. */
    private void await(long nanos) throws BackendException {
        long end = nanoTime.getAsLong() + nanos;
        for (long left = nanos; left > 0; left = end - nanoTime.getAsLong()) {
            if (Thread.currentThread().isInterrupted()) {
                throw new BackendException(ErrorCode.UNAVAILABLE, "execution was interrupted");
            }
            LockSupport.parkNanos(this, left);
        }
    }

    /** Inputs belong to the server, which keeps them until the response was sent. */
    private static void noRelease() {}
}
