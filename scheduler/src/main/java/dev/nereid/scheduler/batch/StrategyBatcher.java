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
 * Forms batches with the batching strategy of a model. Guarded by the lock of the queue, but for {@link #evaluate} and
 * {@link #end}, which call the rule: the thread that forms a batch calls these without the lock, and no other thread
 * forms one meanwhile.
 *
 * <p><b>In steps.</b> Under the lock the requests that could make the next batch are written down, and their memory is
 * kept alive. Without the lock the rule is asked about one after the other. Under the lock again, what waits by then is
 * planned as ever, but for two things: a request that the rule refused ends the run, and one that it was not asked
 * about is not seen. Requests may have left meanwhile, and they are simply not there; others may have come. Where they
 * matter, and nothing can be taken without them, all begins anew with the batch closed and another begun: when they go
 * first, or when what is there would have to wait for more.
 *
 * <p><b>Who forms.</b> Any instance that is free, one at a time. Others that become free meanwhile wait as idle ones,
 * and calls of instances are put off: at its end the former looks whether any was, and calls one if requests are left.
 */
public final class StrategyBatcher {
    private static final Logger LOG = LoggerFactory.getLogger(StrategyBatcher.class);
    private static final long LOG_INTERVAL_NANOS = TimeUnit.MINUTES.toNanos(1);

    private final ModelScope model;
    private final BatchingStrategy strategy;
    private final BatchPlanner planner;

    /** The batch that is formed; {@code null} if nobody forms one. */
    private @Nullable StrategyBatch current;

    /** Whether an instance would have been called while the batch was formed. */
    private boolean wakeupDeferred;

    /** Whether nothing was taken because of a request that the rule has not been asked about. */
    private boolean incomplete;

    /** When the last failure of the rule was logged, and how many were not since; used by the former alone. */
    private long loggedNanos;

    private long unlogged = -1;

    /**
     * Makes a batcher.
     *
     * @param strategy the model's rule, which somebody else closes
     * @param planner decides about batches
     */
    public StrategyBatcher(ModelScope model, BatchingStrategy strategy, BatchPlanner planner) {
        this.model = model;
        this.strategy = strategy;
        this.planner = planner;
    }

    /** Says whether a batch is being formed. */
    public boolean isForming() {
        return current != null;
    }

    /** Puts the call of an instance off until the batch is formed. */
    public void deferWakeup() {
        wakeupDeferred = true;
    }

    /**
     * Begins to form a batch.
     *
     * @return whether this thread is to go on with {@link #evaluate}; not if nothing waits or another thread forms one
     */
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

    /** Returns the requests that could make the next batch, by size and inputs: the first in any case. */
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

    /** Asks the rule. To be called without the lock. */
    public void evaluate() {
        get(current).evaluate(strategy);
    }

    /**
     * Decides about the batch.
     *
     * @param hurry whether nothing more will come
     * @return how many requests to take from the front; 0 to wait
     */
    public int plan(QueueView queue, long nowNanos, boolean hurry) {
        StrategyBatch forming = get(current);
        StrategyQueueView view =
                new StrategyQueueView(queue, forming, model.settings().maxBatchSize());
        int count = planner.take(view, nowNanos, hurry);
        incomplete = count == 0 && view.endsEarly();
        return count;
    }

    /** Ends the forming. To be called without the lock, and then {@link #ended} with it. */
    public void end() {
        get(current).end();
    }

    /**
     * Lets other threads form batches.
     *
     * @return whether somebody has to look at the queue again
     */
    public boolean ended() {
        current = null;
        return wakeupDeferred || incomplete;
    }

    private static StrategyBatch get(@Nullable StrategyBatch forming) {
        if (forming == null) {
            throw new IllegalStateException("no batch is formed (expected: begin said that one is)");
        }
        return forming;
    }

    /** Logs what the rule threw, once a minute at most. */
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
                .log("batching strategy failed");
        loggedNanos = now;
        unlogged = 0;
    }
}
