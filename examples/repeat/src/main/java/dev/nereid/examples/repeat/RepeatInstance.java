package dev.nereid.examples.repeat;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.CancelHook;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.Tensor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongSupplier;

/**
 * Starts the responses to each request. The execution returns after the wait in the request; responses may follow
 * later. Confined to the instance's thread.
 */
final class RepeatInstance implements ModelInstance {
    private final Timer timer;
    private final LongSupplier nanoTime;

    RepeatInstance(Timer timer, LongSupplier nanoTime) {
        this.timer = timer;
        this.nanoTime = nanoTime;
    }

    @Override
    public void execute(Batch batch) {
        for (InferenceRequest request : batch.requests()) {
            try {
                respond(request);
            } catch (BackendException e) {
                request.sender().fail(e);
            }
        }
    }

    private void respond(InferenceRequest request) throws BackendException {
        Tensor in = input(request, RepeatBackend.IN);
        Tensor delay = input(request, RepeatBackend.DELAY);
        if (!in.shape().equals(delay.shape())) {
            throw new BackendException(
                    ErrorCode.INVALID_ARGUMENT,
                    "expected IN and DELAY shape to match, got " + in.shape() + " and " + delay.shape());
        }
        // Read before the responses begin: with the last of them the inputs are gone.
        long waitNanos = waitNanos(request);
        Thread waiter = Thread.currentThread();
        // Registered before the hook of the responses: once that hook has completed the request, no other runs.
        CancelHook hook = request.onCancel(() -> LockSupport.unpark(waiter));
        try {
            Repetition.begin(request, in, delay, timer);
            await(request, waitNanos);
        } finally {
            hook.close();
        }
    }

    private static long waitNanos(InferenceRequest request) throws BackendException {
        Tensor wait = input(request, RepeatBackend.WAIT);
        if (wait.shape().elementCount() != 1) {
            throw new BackendException(
                    ErrorCode.INVALID_ARGUMENT, "input 'WAIT': shape " + wait.shape() + " (expected: one element)");
        }
        return TimeUnit.MILLISECONDS.toNanos(Integer.toUnsignedLong(wait.data().get(Repetition.INT, 0)));
    }

    /** Waits, unless the request is cancelled or the thread is interrupted. */
    private void await(InferenceRequest request, long nanos) {
        long start = nanoTime.getAsLong();
        for (long left = nanos;
                left > 0 && !request.isCancelled() && !Thread.currentThread().isInterrupted();
                left = nanos - (nanoTime.getAsLong() - start)) {
            LockSupport.parkNanos(this, left);
        }
    }

    private static Tensor input(InferenceRequest request, String name) throws BackendException {
        return request.input(name)
                .orElseThrow(() -> new BackendException(ErrorCode.INVALID_ARGUMENT, "input '" + name + "': missing"));
    }
}
