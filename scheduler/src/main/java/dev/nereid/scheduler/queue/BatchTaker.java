package dev.nereid.scheduler.queue;

import dev.nereid.scheduler.batch.BatchPlanner;
import dev.nereid.scheduler.batch.QueueView;
import dev.nereid.scheduler.batch.StrategyBatcher;
import dev.nereid.scheduler.request.ScheduledRequest;
import java.util.concurrent.locks.Lock;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Takes the next batch out of the waiting requests. Guarded by the lock of the queue.
 *
 * <p><b>The model's own rule.</b> A model may have a rule of its own for what goes into a batch. It is foreign code, so
 * the lock is given back while a batch is formed: see {@link StrategyBatcher}. An instance that forms a batch looks
 * again at its end, so it needs no call meanwhile.
 *
 * <p><b>Hold.</b> For tests, no batch is taken until some number of requests wait; then all goes on as ever. A stop
 * ends the hold. Time-outs and deadlines count as ever meanwhile.
 */
final class BatchTaker {
    /**
     * So often is a batch begun anew while others come and go; then the first request goes alone, which it always may.
     */
    private static final int MAX_FORMINGS = 16;

    private final Lock lock;
    private final BatchPlanner planner;
    private final WaitingRequests requests;
    private final QueueView view;
    private final LongSupplier nanoTime;
    private final @Nullable StrategyBatcher strategy;

    private boolean stopped;

    /** How many requests have to wait before the first batch is taken; 0 once they did. */
    private int held;

    /**
     * Takes from what waits.
     *
     * @param lock the lock of the queue
     * @param planner decides about batches
     * @param requests what waits
     * @param nanoTime the clock
     * @param strategy forms batches by the model's own rule; {@code null} if there is none
     */
    BatchTaker(
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

    /** Takes no batch until so many requests wait, once. */
    void hold(int number) {
        held = number;
    }

    /** Ends the hold, and says whether there was one. */
    boolean endHold() {
        boolean ended = isHeld();
        held = 0;
        return ended;
    }

    /** Takes note that a request was added. */
    void added() {
        if (held <= requests.length()) {
            held = 0;
        }
    }

    /** Says whether no batch is taken yet, whatever waits. */
    private boolean isHeld() {
        return held > 0 && !stopped;
    }

    /** Says whether any thread may take a batch at once: nothing foreign is asked about it. */
    boolean isPlain() {
        return strategy == null;
    }

    /** Takes what waits at once from now on, since nothing more will come. */
    void stop() {
        stopped = true;
        if (strategy != null) {
            strategy.deferWakeup();
        }
    }

    boolean isStopped() {
        return stopped;
    }

    /** Says whether requests wait, or will come. */
    boolean mayHaveWork() {
        return !stopped || requests.length() > 0;
    }

    /**
     * Takes what is overdue, and a batch if there is one, and leaves them at a seat.
     *
     * @param now the moment of the call
     * @return the moment of the return
     */
    long take(InstanceHandle seat, long now) {
        requests.expire(now, seat.expired);
        if (isHeld()) {
            return now;
        }
        if (strategy != null) {
            form(strategy, seat);
            return nanoTime.getAsLong();
        }
        int count;
        do {
            count = planner.take(view, now, stopped);
            takeFirst(seat, count);
        } while (count > 0 && seat.taken.isEmpty());
        return now;
    }

    private void takeFirst(InstanceHandle seat, int count) {
        for (int i = 0; i < count; i++) {
            ScheduledRequest request = requests.poll();
            if (request != null && request.begin()) { // if not, it is about to be taken out by who answers it
                request.delivery().takePlace();
                seat.taken.add(request);
            }
        }
    }

    /** Takes a batch that the model's own rule forms; what is overdue goes before it, since the rule takes its time. */
    private void form(StrategyBatcher rule, InstanceHandle seat) {
        boolean again = seat.expired.isEmpty();
        int formings = 0;
        while (again && rule.begin(view)) {
            int count = 0;
            try {
                unlocked(rule::evaluate);
                long now = nanoTime.getAsLong();
                requests.expire(now, seat.expired);
                boolean last = formings++ == MAX_FORMINGS;
                count = rule.plan(view, now, stopped || last);
                count = last ? Math.max(1, count) : count;
                takeFirst(seat, count);
            } finally {
                unlocked(rule::end);
                again = rule.ended() || count > 0;
            }
            again &= seat.taken.isEmpty() && seat.expired.isEmpty();
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

    /** Says whether a batch is being formed by the model's own rule. */
    boolean isForming() {
        return strategy != null && strategy.isForming();
    }

    /**
     * Puts the call of an instance off while a batch is being formed.
     *
     * @return whether one is
     */
    boolean defersWakeup() {
        if (strategy == null || !strategy.isForming()) {
            return false;
        }
        strategy.deferWakeup();
        return true;
    }

    /** Says whether there is a batch, as far as the planner goes. */
    boolean hasBatch(long now) {
        return !isForming() && !isHeld() && planner.take(view, now, stopped) > 0;
    }

    /**
     * Says whether somebody has to look: there is a batch, or the model's own rule is to be asked about each request.
     */
    boolean mayHaveBatch(long now) {
        return !isHeld() && (strategy != null || planner.take(view, now, stopped) > 0);
    }

    /** Says whether requests wait that may wait for others, and nobody forms a batch. */
    boolean needsLeader() {
        return requests.length() > 0 && !isForming() && !isHeld();
    }

    /** Returns for how long what waits may wait for others. */
    long waitNanos(long now) {
        return planner.waitNanos(view, now);
    }

    /** Returns how many batches what waits makes at most. */
    long batches() {
        return planner.batches(requests.length(), requests.items());
    }

    /** Says whether there is nothing to be taken, now or when time passes. */
    boolean isEmpty() {
        return requests.length() == 0 || isHeld();
    }
}
