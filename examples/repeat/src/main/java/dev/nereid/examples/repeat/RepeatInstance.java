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
    private final boolean decoupled;
    private final Timer timer;
    private final LongSupplier nanoTime;

    RepeatInstance(boolean decoupled, Timer timer, LongSupplier nanoTime) {
        this.decoupled = decoupled;
        this.timer = timer;
        this.nanoTime = nanoTime;
    }

    @Override
    public void execute(Batch batch) {
        for (InferenceRequest request : batch.requests()) {
            try {
                respond(batch, request);
            } catch (BackendException e) {
                fail(request, e);
            }
        }
    }

    private void fail(InferenceRequest request, BackendException error) {
        if (decoupled) {
            request.sender().fail(error);
        } else {
            request.fail(error);
        }
    }

    private void respond(Batch batch, InferenceRequest request) {
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
            if (decoupled) {
                Repetition.begin(request, in, delay, timer);
            } else {
                beginSingle(batch, request, in, delay);
            }
            await(request, waitNanos);
        } finally {
            hook.close();
        }
    }

    private void beginSingle(Batch batch, InferenceRequest request, Tensor in, Tensor delay) {
        if (in.shape().elementCount() == 0) {
            throw new BackendException(
                    ErrorCode.INTERNAL,
                    "expected a single response, got 0 (expected: an element in IN, or decoupled: true)");
        }
        int value = in.data().get(Repetition.INT, 0);
        long delayMillis = Integer.toUnsignedLong(delay.data().get(Repetition.INT, 0));
        SingleResponse.begin(batch, request, value, delayMillis, timer);
    }

    private static long waitNanos(InferenceRequest request) {
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

    private static Tensor input(InferenceRequest request, String name) {
        return request.input(name)
                .orElseThrow(() -> new BackendException(ErrorCode.INVALID_ARGUMENT, "input '" + name + "': missing"));
    }
}
