package dev.nereid.scheduler.queue;

import dev.nereid.scheduler.batch.BatchPlanner;
import dev.nereid.scheduler.batch.QueueView;
import dev.nereid.scheduler.batch.StrategyBatcher;
import dev.nereid.scheduler.request.ScheduledRequest;
import java.util.List;
import java.util.concurrent.locks.Lock;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Forms batches of the waiting requests of a queue: the dynamic batcher, or one by one. Guarded by the lock of the queue.
 *
 * <p><b>Batching strategy.</b> A model may have its own batching strategy. The strategy is foreign code, so the lock is
 * released while a batch is formed: see {@link StrategyBatcher}. An instance that forms a batch checks the queue again
 * at its end, so it needs no wake-up meanwhile.
 *
 * <p><b>Hold.</b> For tests, no batch is taken until a number of requests wait, once. A stop ends the hold. Timeouts
 * and deadlines apply meanwhile.
 */
final class RequestBatcher implements Batcher {
    /** Limits how often a batch is formed again as the queue changes. The last time, at least one request is taken. */
    private static final int MAX_FORMINGS = 16;

    private final Lock lock;
    private final BatchPlanner planner;
    private final WaitingRequests requests;
    private final QueueView view;
    private final LongSupplier nanoTime;
    private final @Nullable StrategyBatcher strategy;

    private boolean stopped;

    /** Takes requests back from executions, which are counted then; {@code null} if none is rescheduled. */
    private @Nullable RescheduledRequests rescheduled;

    /** The number of requests that were taken and may be rescheduled. */
    private int out;

    /** The number of requests that have to wait before the first batch is taken. It is 0 without a hold. */
    private int held;

    /** Creates a batcher. {@code strategy} is the model's batching strategy; {@code null} if there is none. */
    RequestBatcher(
            Lock lock,
            BatchPlanner planner,
            WaitingRequests requests,
            LongSupplier nanoTime,
            @Nullable StrategyBatcher strategy) {
        this.lock = lock;
        this.planner = planner;
        this.requests = requests;
        this.view = requests.view();
        this.nanoTime = nanoTime;
        this.strategy = strategy;
    }

    /**
     * Takes requests back from executions, and counts them from their batch to the end of its execution. Called before the
     * first instance is registered.
     */
    void setRescheduledRequests(RescheduledRequests receiver) {
        rescheduled = receiver;
    }

    @Override
    public void registered(InstanceHandle handle) {
        if (rescheduled != null) {
            handle.setRescheduler(rescheduled.of(handle));
        }
    }

    /** Ends the count of requests after their execution, unless its instance is lost. */
    void executionsEnded(InstanceHandle handle, int ended) {
        if (!handle.lost) {
            handle.out -= ended;
            out -= ended;
        }
    }

    @Override
    public void lose(InstanceHandle handle) {
        if (!handle.lost) {
            handle.lost = true;
            out -= handle.out;
        }
    }

    WaitingRequests requests() {
        return requests;
    }

    LongSupplier nanoTime() {
        return nanoTime;
    }

    /** Takes no batch until a number of requests wait, once. */
    void hold(int number) {
        held = number;
    }

    /** Ends the hold; returns whether there was one. */
    boolean endHold() {
        boolean ended = isHeld();
        held = 0;
        return ended;
    }

    /** Ends the hold if enough requests wait; called after a request was added. */
    void added() {
        if (held <= requests.length()) {
            held = 0;
        }
    }

    private boolean isHeld() {
        return held > 0 && !stopped;
    }

    @Override
    public boolean isPlain() {
        return strategy == null;
    }

    /** Takes waiting requests at once from now on, since no more are added. */
    void stop() {
        stopped = true;
        if (strategy != null) {
            strategy.deferWakeup();
        }
    }

    @Override
    public boolean isStopped() {
        return stopped;
    }

    @Override
    public boolean mayHaveWork() {
        return !stopped || requests.length() > 0 || out > 0;
    }

    @Override
    public long take(InstanceHandle handle, long now) {
        requests.timeouts().expire(now, handle.expired);
        if (isHeld()) {
            return now;
        }
        if (strategy != null) {
            form(strategy, handle);
            return nanoTime.getAsLong();
        }
        int count;
        do {
            count = planner.take(view, now, stopped);
            takeFirst(handle, count);
        } while (count > 0 && handle.taken.isEmpty());
        return now;
    }

    private void takeFirst(InstanceHandle handle, int count) {
        for (int i = 0; i < count; i++) {
            ScheduledRequest request = requests.poll();
            if (request != null) {
                begin(handle, request);
            }
        }
    }

    private void begin(InstanceHandle handle, ScheduledRequest request) {
        if (request.begin()) { // if not, the thread that completes it is about to remove it
            request.delivery().takePlace();
            handle.taken.add(request);
            if (rescheduled != null) {
                handle.out++;
                out++;
            }
        }
    }

    /** Returns whether an offered request can be taken at once: no other one waits, and nothing delays the batch. */
    boolean takesAtOnce() {
        return strategy == null && !stopped && !isHeld() && requests.length() == 0;
    }

    /** Returns whether requests make one batch now. */
    boolean plansAll(QueueView offered, int count) {
        return planner.take(offered, nanoTime.getAsLong(), false) == count;
    }

    /** Begins requests that were not queued; returns whether any began. */
    boolean takeUnqueued(InstanceHandle handle, List<ScheduledRequest> offered) {
        for (int i = 0; i < offered.size(); i++) {
            begin(handle, offered.get(i));
        }
        return !handle.taken.isEmpty();
    }

    /** Takes a batch of the batching strategy. Expired requests go before it, since the strategy may be slow. */
    private void form(StrategyBatcher batcher, InstanceHandle handle) {
        boolean again = handle.expired.isEmpty();
        int formings = 0;
        while (again && batcher.begin(view)) {
            int count = 0;
            try {
                unlocked(batcher::evaluate);
                long now = nanoTime.getAsLong();
                requests.timeouts().expire(now, handle.expired);
                boolean last = formings++ == MAX_FORMINGS;
                count = batcher.plan(view, now, stopped || last);
                count = last ? Math.max(1, count) : count;
                count = handle.unavailable ? 0 : count; // since then: another instance forms it again
                takeFirst(handle, count);
            } finally {
                unlocked(batcher::end);
                again = batcher.ended() || count > 0;
            }
            again &= handle.taken.isEmpty() && handle.expired.isEmpty() && !handle.unavailable;
        }
    }

    private void unlocked(Runnable foreign) {
        lock.unlock();
        try {
            foreign.run();
        } finally {
            lock.lock();
        }
    }

    boolean isForming() {
        return strategy != null && strategy.isForming();
    }

    @Override
    public boolean defersWakeup() {
        if (strategy == null || !strategy.isForming()) {
            return false;
        }
        strategy.deferWakeup();
        return true;
    }

    @Override
    public boolean hasBatch(long now) {
        return !isForming() && !isHeld() && planner.take(view, now, stopped) > 0;
    }

    @Override
    public boolean mayHaveBatch(long now) {
        return !isHeld() && (strategy != null || planner.take(view, now, stopped) > 0);
    }

    @Override
    public boolean needsLeader() {
        return requests.length() > 0 && !isForming() && !isHeld();
    }

    @Override
    public long waitNanos(long now) {
        return planner.waitNanos(view, now);
    }

    @Override
    public long batches() {
        return planner.batches(requests.length(), requests.items());
    }

    @Override
    public boolean isEmpty() {
        return requests.length() == 0 || isHeld();
    }

    @Override
    public boolean needsInstanceThread() {
        return requests.needInstanceThread();
    }

    @Override
    public List<ScheduledRequest> removeWaiting() {
        return requests.drain();
    }

    @Override
    public List<ScheduledRequest> deregister(InstanceHandle handle, boolean isLast) {
        return isLast ? requests.drain() : List.of();
    }
}
