package dev.nereid.examples.sequence;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.SequenceEnd;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongSupplier;

/** Adds up the numbers of each sequence, after a delay. Confined to the instance. */
final class SumInstance implements ModelInstance {
    private final SequenceSums sums;
    private final long delayNanos;
    private final LongSupplier nanoTime;

    SumInstance(SequenceSums sums, long delayNanos, LongSupplier nanoTime) {
        this.sums = sums;
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
                sums.add(request, place);
            } catch (BackendException e) {
                request.fail(e);
            }
        }
    }

    @Override
    public void sequenceEnded(Sequence.Id id, SequenceEnd reason) {
        sums.forget(id);
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
