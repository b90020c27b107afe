package dev.nereid.examples.dynasequence;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.SequenceEnd;
import dev.nereid.spi.Tensor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongSupplier;

/**
 * Adds up the inputs of each sequence, which it finds by the control input CORRID. START begins with the input; END adds
 * the id to the sum. Confined to the instance: all requests of a sequence come here.
 */
final class DynaSequenceInstance implements ModelInstance {
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    private final Controls controls;
    private final long delayNanos;
    private final LongSupplier nanoTime;

    /** The sums so far, by sequence. */
    private final Map<Long, int[]> sums = new HashMap<>();

    /**
     * The names of the control inputs.
     *
     * @param start is not 0 for the first request of a sequence
     * @param end is not 0 for the last request of a sequence
     * @param id is the id of the sequence
     */
    record Controls(String start, String end, String id) {}

    DynaSequenceInstance(Controls controls, long delayNanos, LongSupplier nanoTime) {
        this.controls = controls;
        this.delayNanos = delayNanos;
        this.nanoTime = nanoTime;
    }

    @Override
    public void execute(Batch batch) throws BackendException {
        if (delayNanos > 0) {
            await(delayNanos);
        }
        List<InferenceRequest> requests = batch.requests();
        for (int i = 0; i < requests.size(); i++) {
            try {
                add(requests.get(i));
            } catch (BackendException e) {
                requests.get(i).fail(e);
            }
        }
    }

    private void add(InferenceRequest request) throws BackendException {
        long id = request.requireInput(controls.id()).data().get(LONG, 0);
        Tensor input = request.requireInput(DynaSequenceBackend.INPUT);
        boolean ends = isSet(request, controls.end());
        int[] sum = numbers(input);
        int[] before = isSet(request, controls.start()) ? null : sums.get(id);
        if (before != null && before.length != sum.length) {
            throw new BackendException(
                    ErrorCode.INVALID_ARGUMENT,
                    "input 'INPUT': " + sum.length + " elements (expected: " + before.length
                            + ", as at the start of the sequence)");
        }
        for (int i = 0; i < sum.length; i++) {
            sum[i] += (before == null ? 0 : before[i]) + (ends ? (int) id : 0);
        }
        Tensor output = request.response().allocate(DynaSequenceBackend.OUTPUT, DataType.INT32, input.shape());
        MemorySegment.copy(sum, 0, output.data(), INT, 0, sum.length);
        if (ends) {
            sums.remove(id);
        } else {
            sums.put(id, sum);
        }
    }

    @Override
    public void sequenceEnded(Sequence.Id id, SequenceEnd reason) {
        if (id instanceof Sequence.Id.Numeric(long number)) {
            sums.remove(number);
        }
    }

    private static boolean isSet(InferenceRequest request, String control) throws BackendException {
        return request.requireInput(control).data().get(INT, 0) != 0;
    }

    private static int[] numbers(Tensor tensor) {
        return tensor.data().toArray(INT);
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
}
