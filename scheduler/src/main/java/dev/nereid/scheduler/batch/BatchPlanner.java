package dev.nereid.scheduler.batch;

import java.util.List;

/**
 * Decides the size of the next batch, and how long to delay it. Immutable, and a pure function of queue and time.
 *
 * <p>The rules are asked whenever an instance is free:
 *
 * <ol>
 *   <li>A batch is a run of requests from the front of the queue, over priority levels: it ends before the first one
 *       that would exceed the largest batch or whose inputs cannot be joined. The first request is taken whatever its
 *       size.
 *   <li>Once the oldest request of the run has waited for the whole delay, everything that fits is taken, preferred size
 *       or not. A delay of 0 never counts as waited for.
 *   <li>Otherwise the largest preferred size that the run passes through is taken, and the rest stays; where a run passes
 *       through none, but its next request would exceed the largest preferred size, what is before that request.
 *   <li>A run without either is taken as it is if it cannot grow, or if there is no delay. Any other waits.
 * </ol>
 *
 * <p>While all instances are busy nothing is decided, so requests pile up, and the next decision finds them together.
 */
public final class BatchPlanner {
    private final int maxBatchSize;
    private final int[] preferredSizes;
    private final int largestPreferred;
    private final long maxQueueDelayNanos;

    /**
     * Makes a planner for batches of several requests.
     *
     * @param maxBatchSize the largest batch in items, at least 1
     * @param preferredSizes the sizes worth sending at once; empty for the largest batch alone
     * @param maxQueueDelayNanos how long the oldest request may wait for others
     */
    public BatchPlanner(int maxBatchSize, List<Integer> preferredSizes, long maxQueueDelayNanos) {
        this.maxBatchSize = maxBatchSize;
        this.maxQueueDelayNanos = maxQueueDelayNanos;
        int[] sizes = new int[Math.max(1, preferredSizes.size())];
        sizes[0] = maxBatchSize;
        int largest = preferredSizes.isEmpty() ? maxBatchSize : 0;
        for (int i = 0; i < preferredSizes.size(); i++) {
            sizes[i] = preferredSizes.get(i);
            largest = Math.max(largest, sizes[i]);
        }
        this.preferredSizes = sizes;
        this.largestPreferred = largest;
    }

    /** Makes a planner that takes one request at a time, whatever its size, as soon as it can. */
    public static BatchPlanner oneByOne() {
        return new BatchPlanner(1, List.of(), 0);
    }

    /**
     * Decides about the next batch.
     *
     * @param queue the requests that wait
     * @param nowNanos the time
     * @param hurry whether nothing more will come, so that waiting is of no use
     * @return how many requests to take from the front; 0 to wait
     */
    public int take(QueueView queue, long nowNanos, boolean hurry) {
        long items = 0;
        long waited = 0;
        int taken = 0;
        int best = 0;
        boolean full = false;
        queue.rewind();
        while (!full && queue.next()) {
            int size = queue.batchSize();
            if (taken > 0) {
                if (best == 0 && items + size > largestPreferred) {
                    best = taken;
                }
                full = items + size > maxBatchSize || !queue.joins();
            }
            if (!full) {
                items += size;
                taken++;
                waited = Math.max(waited, nowNanos - queue.enqueuedNanos());
                if (isPreferred(items)) {
                    best = taken;
                }
            }
        }
        boolean delays = maxQueueDelayNanos > 0;
        if (hurry || (delays && waited >= maxQueueDelayNanos)) {
            return taken;
        }
        if (best > 0) {
            return best;
        }
        return !delays || full || items >= largestPreferred ? taken : 0;
    }

    /**
     * Returns how long requests that are not to be taken now may still wait for others: all of them are one run then.
     *
     * @param queue the requests that wait
     * @param nowNanos the time
     * @return the rest of the delay, in nanoseconds; 0 or less if there is none
     */
    public long waitNanos(QueueView queue, long nowNanos) {
        long waited = 0;
        queue.rewind();
        while (queue.next()) {
            waited = Math.max(waited, nowNanos - queue.enqueuedNanos());
        }
        return maxQueueDelayNanos - waited;
    }

    /** Returns how many batches the requests that wait make if all of them can be joined. */
    public long batches(int length, long items) {
        return maxBatchSize == 1 ? length : (items + maxBatchSize - 1) / maxBatchSize;
    }

    private boolean isPreferred(long items) {
        for (int size : preferredSizes) {
            if (size == items) {
                return true;
            }
        }
        return false;
    }
}
