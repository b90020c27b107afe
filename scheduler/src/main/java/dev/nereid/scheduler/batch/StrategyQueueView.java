package dev.nereid.scheduler.batch;

import dev.nereid.scheduler.request.ScheduledRequest;

/**
 * Queue prefix already evaluated by the batching strategy. Confined to the lock of the queue.
 *
 * <p>It ends before the first request that might join the batch and is not evaluated. A request that cannot join, by
 * its size or inputs, is visible even if it is not evaluated: it ends the run.
 */
final class StrategyQueueView implements QueueView {
    private final QueueView queue;
    private final StrategyBatch forming;
    private final int maxBatchSize;
    private long items;
    private boolean early;

    StrategyQueueView(QueueView queue, StrategyBatch forming, int maxBatchSize) {
        this.queue = queue;
        this.forming = forming;
        this.maxBatchSize = maxBatchSize;
    }

    /** Returns whether the view ended before a request that is not evaluated. */
    boolean endsEarly() {
        return early;
    }

    @Override
    public void rewind() {
        queue.rewind();
        items = 0;
        early = false;
    }

    @Override
    public boolean next() {
        if (early || !queue.next()) {
            return false;
        }
        ScheduledRequest current = queue.current();
        boolean isFirst = items == 0;
        boolean isVisible = isFirst ? current == forming.first() : forming.hasEvaluated(current) || !mayJoin();
        if (!isVisible) {
            early = true;
            return false;
        }
        items += queue.batchSize();
        return true;
    }

    @Override
    public ScheduledRequest current() {
        return queue.current();
    }

    private boolean mayJoin() {
        return items + queue.batchSize() <= maxBatchSize && queue.joins();
    }

    @Override
    public int batchSize() {
        return queue.batchSize();
    }

    @Override
    public long enqueuedNanos() {
        return queue.enqueuedNanos();
    }

    @Override
    public boolean joins() {
        return queue.joins() && forming.includes(queue.current());
    }
}
