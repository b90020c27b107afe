package dev.nereid.examples.sequence;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.Tensor;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongSupplier;

/**
 * Adds up the numbers of each place of the batch: all elements of all inputs. The place of a sequence never changes.
 * START begins with the input; places that are not READY stay as they are. Confined to the instance.
 */
final class SequenceInstance implements ModelInstance {
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    private final Controls controls;
    private final long delayNanos;
    private final LongSupplier nanoTime;

    /** The sums so far, by place. */
    private final Map<Integer, Integer> sums = new HashMap<>();

    /**
     * The names of the control inputs.
     *
     * @param start is not 0 for the first request of a sequence
     * @param ready is 0 for a place without a request
     */
    record Controls(String start, String ready) {}

    SequenceInstance(Controls controls, long delayNanos, LongSupplier nanoTime) {
        this.controls = controls;
        this.delayNanos = delayNanos;
        this.nanoTime = nanoTime;
    }

    @Override
    public void execute(Batch batch) {
        if (delayNanos > 0) {
            await(delayNanos);
        }
        List<InferenceRequest> requests = batch.requests();
        for (int place = 0; place < requests.size(); place++) {
            InferenceRequest request = requests.get(place);
            try {
                if (isSet(request, controls.ready())) {
                    add(request, place);
                }
            } catch (BackendException e) {
                request.fail(e);
            }
        }
    }

    private void add(InferenceRequest request, int place) {
        if (request.sequence().isPresent() && request.sequence().get().id() instanceof Sequence.Id.Text) {
            String id = request.id().isEmpty() ? "<id_unknown>" : request.id(); // as the reference's backend
            throw new BackendException(
                    ErrorCode.INVALID_ARGUMENT,
                    "[request id: " + id + "] correlation ID in request is not an unsigned int");
        }
        Tensor input = request.requireInput(SequenceBackend.INPUT);
        int sum = isSet(request, controls.start()) ? 0 : sums.getOrDefault(place, 0);
        long count = input.shape().elementCount();
        for (long i = 0; i < count; i++) {
            sum += input.data().getAtIndex(INT, i);
        }
        Tensor output = request.response().allocate(SequenceBackend.OUTPUT, DataType.INT32, input.shape());
        for (long i = 0; i < count; i++) {
            output.data().setAtIndex(INT, i, sum);
        }
        sums.put(place, sum);
    }

    private static boolean isSet(InferenceRequest request, String control) {
        return request.requireInput(control).data().get(INT, 0) != 0;
    }

    /** Simulates a model that computes: waits, unless the thread is interrupted. */
    private void await(long nanos) {
        long end = nanoTime.getAsLong() + nanos;
        for (long left = nanos; left > 0; left = end - nanoTime.getAsLong()) {
            if (Thread.currentThread().isInterrupted()) {
                throw new BackendException(ErrorCode.UNAVAILABLE, "execution was interrupted");
            }
            LockSupport.parkNanos(this, left);
        }
    }
}
