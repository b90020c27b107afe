package dev.nereid.scheduler.batch;

import dev.nereid.scheduler.request.ModelScope;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.spi.BatchingStrategy;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Forms batches with the batching strategy of a model. Guarded by the lock of the queue, except for {@link #evaluate}
 * and {@link #end}, which call the strategy: the thread that forms a batch calls these without the lock, and no other
 * thread forms one meanwhile.
 *
 * <p><b>Steps.</b> Under the lock, {@link #begin} collects the candidates of the next batch, and retains their memory.
 * Without the lock, {@link #evaluate} passes them to the strategy one after the other. Under the lock again,
 * {@link #plan} plans the requests that wait by then as usual, with two exceptions: a request that the strategy
 * excluded ends the run, and a request that is not evaluated is invisible. Requests that left meanwhile are simply
 * missing; others may have been added. If those matter, and no batch can be taken without them, forming starts again
 * with a new batch: if they are first in the queue, or if the visible requests would have to wait for more.
 *
 * <p><b>Threads.</b> Any free instance forms batches, one at a time. Other instances that become free meanwhile are
 * idle, and wake-ups are deferred: at its end the forming instance wakes another one if a wake-up was deferred and
 * requests are left.
 */
public final class StrategyBatcher {
    private static final Logger LOG = LoggerFactory.getLogger(StrategyBatcher.class);
    private static final long LOG_INTERVAL_NANOS = TimeUnit.MINUTES.toNanos(1);

    private final ModelScope model;
    private final BatchingStrategy strategy;
    private final BatchPlanner planner;

    /** The batch being formed; {@code null} for none. */
    private @Nullable StrategyBatch current;

    /** {@code true} if a wake-up was deferred while the batch was formed. */
    private boolean wakeupDeferred;

    /** {@code true} if no request was taken because of one that is not evaluated. */
    private boolean incomplete;

    /** The time of the last logged failure of the strategy. Confined, like {@link #unlogged}, to the forming thread. */
    private long loggedNanos;

    /** The number of failures since then that were not logged. It is below 0 before the first failure. */
    private long unlogged = -1;

    /** Creates a batcher with the batching strategy of the model, which the caller closes. */
    public StrategyBatcher(ModelScope model, BatchingStrategy strategy, BatchPlanner planner) {
        this.model = model;
        this.strategy = strategy;
        this.planner = planner;
    }

    public boolean isForming() {
        return current != null;
    }

    /** Defers the wake-up of an instance until the batch is formed. */
    public void deferWakeup() {
        wakeupDeferred = true;
    }

    /** Begins to form a batch; returns whether to {@link #evaluate}: requests wait, and no other thread forms one. */
    public boolean begin(QueueView queue) {
        if (isForming()) {
            return false;
        }
        List<ScheduledRequest> candidates = candidates(queue, model.settings().maxBatchSize());
        if (candidates.isEmpty()) {
            return false;
        }
        candidates.forEach(ScheduledRequest::retain);
        current = new StrategyBatch(model, candidates, this::failed);
        wakeupDeferred = false;
        return true;
    }

    /** Returns the requests that could make the next batch, by size and inputs; the first is always among them. */
    private static List<ScheduledRequest> candidates(QueueView queue, int maxBatchSize) {
        List<ScheduledRequest> candidates = new ArrayList<>();
        long items = 0;
        boolean full = false;
        queue.rewind();
        while (!full && queue.next()) {
            items += queue.batchSize();
            full = !candidates.isEmpty() && (items > maxBatchSize || !queue.joins());
            if (!full) {
                candidates.add(queue.current());
            }
        }
        return candidates;
    }

    /** Calls the strategy. The caller does not hold the lock. */
    public void evaluate() {
        get(current).evaluate(strategy);
    }

    /** Returns how many requests to take from the front; 0 to wait. {@code hurry} excludes waits: no more are added. */
    public int plan(QueueView queue, long nowNanos, boolean hurry) {
        StrategyBatch forming = get(current);
        EvaluatedPrefix view =
                new EvaluatedPrefix(queue, forming, model.settings().maxBatchSize());
        int count = planner.take(view, nowNanos, hurry);
        incomplete = count == 0 && view.endsEarly();
        return count;
    }

    /** Ends the batch. Called without the lock; {@link #ended} has to follow with the lock. */
    public void end() {
        get(current).end();
    }

    /** Allows other threads to form batches; returns whether the caller has to check the queue again. */
    public boolean ended() {
        current = null;
        return wakeupDeferred || incomplete;
    }

    private static StrategyBatch get(@Nullable StrategyBatch forming) {
        if (forming == null) {
            throw new IllegalStateException("no batch is formed (expected: begin returned true)");
        }
        return forming;
    }

    /** Logs a failure of the strategy, once a minute at most. */
    private void failed(String method, Throwable thrown) {
        model.fatalErrors().check(thrown);
        long now = model.nanoTime().getAsLong();
        if (unlogged >= 0 && now - loggedNanos < LOG_INTERVAL_NANOS) {
            unlogged++;
            return;
        }
        LOG.atError()
                .addKeyValue("model", model.settings().name())
                .addKeyValue("version", model.settings().version())
                .addKeyValue("method", method)
                .addKeyValue("unlogged", Math.max(0, unlogged))
                .setCause(thrown)
                .log(
                        "batching strategy failed (model '{}', version {}, method {})",
                        model.settings().name(),
                        model.settings().version(),
                        method);
        loggedNanos = now;
        unlogged = 0;
    }

    /**
     * Queue prefix already evaluated by the batching strategy. Confined to the lock of the queue.
     *
     * <p>It ends before the first request that might join the batch and is not evaluated. A request that cannot join,
     * by its size or inputs, is visible even if it is not evaluated: it ends the run.
     */
    private static final class EvaluatedPrefix implements QueueView {
        private final QueueView queue;
        private final StrategyBatch forming;
        private final int maxBatchSize;
        private long items;
        private boolean early;

        EvaluatedPrefix(QueueView queue, StrategyBatch forming, int maxBatchSize) {
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
}
