package dev.nereid.scheduler.batch;

import java.util.List;

/**
 * Decides the size of the next batch, and how long to delay it. Immutable, and a pure function of queue and time.
 *
 * <p>The rules apply whenever an instance is free:
 *
 * <ol>
 *   <li>A batch is a run of requests from the front of the queue, over priority levels: it ends before the first one
 *       that would exceed the largest batch or has inputs that cannot be joined. The first request is taken at any
 *       size.
 *   <li>Once the oldest request of the run has waited for the maximum queue delay, the whole run is taken, preferred size or not. A delay of 0 never counts as reached.
 *   <li>Otherwise the largest preferred size that the run passes through is taken, and the rest stays. If a run passes through none, but a request would exceed the largest preferred size, the requests before it are taken.
 *   <li>A run without either is taken as a whole if it cannot grow, or if there is no delay. Any other run waits.
 * </ol>
 *
 * <p>While all instances are busy nothing is decided, so waiting requests accumulate to larger batches.
 */
public final class BatchPlanner {
    private final int maxBatchSize;
    private final int[] preferredSizes;
    private final int largestPreferred;
    private final long maxQueueDelayNanos;

    /**
     * Creates a planner for batches of several requests.
     *
     * @param maxBatchSize the maximum size of a batch in items, at least 1
     * @param preferredSizes the sizes to take at once; empty for the maximum size alone
     * @param maxQueueDelayNanos the maximum time that the oldest request waits for others
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

    /** Creates a planner that takes one request at a time. It does so at any size and without delay. */
    public static BatchPlanner oneByOne() {
        return new BatchPlanner(1, List.of(), 0);
    }

    /** Returns how many requests to take from the front; 0 to wait. {@code hurry} excludes waits: no more are added. */
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

    /** Returns how long, in nanoseconds, the one run that {@link #take} leaves may still wait; 0 or less for none. */
    public long waitNanos(QueueView queue, long nowNanos) {
        long waited = 0;
        queue.rewind();
        while (queue.next()) {
            waited = Math.max(waited, nowNanos - queue.enqueuedNanos());
        }
        return maxQueueDelayNanos - waited;
    }

    /** Returns the number of batches of the waiting requests if all can be joined. */
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
