package dev.nereid.scheduler;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.scheduler.time.Timer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * The requests of one model that wait, and the instances that wait for them. Guarded by its lock, the one lock of the
 * model's scheduler; no backend, observer or other foreign code is called under it.
 *
 * <p><b>Pull.</b> Callers of {@link #offer} add requests; each instance takes its next batch itself when it is free.
 * Nobody stands between them, so a request costs one wake-up at most, and none while all instances are busy.
 *
 * <p><b>Who is woken.</b> An instance that finds nothing to do waits in one of two ways. One at most is the
 * <em>leader</em>: requests are there but may still wait for others, and it sleeps until the oldest has waited enough.
 * All others are <em>idle</em> and sleep until they are called. A request calls the leader if it completes a batch;
 * without a leader it calls one idle instance, unless as many are on their way already as there are batches to be had.
 * Whoever takes a batch and leaves something behind does the same. Hence:
 *
 * <p><b>No lost wake-up.</b> Whenever the lock is free and requests wait, one of these holds: every instance is busy and
 * will come by itself; an instance is called and on its way; a leader sleeps, and what waits need not go before it
 * wakes. Time alone changes the third case, and the leader wakes for it.
 *
 * <p><b>Lent seats.</b> A thread that offers a request may be given an idle instance to run it on, without any wake-up.
 * That instance is busy in the sense above: the thread looks for what came meanwhile before it gives the seat back.
 *
 * <p><b>Time.</b> One alarm is set to the earliest moment at which the time of a request is over, or earlier: see
 * {@link DueAlarm}. Whoever takes a batch handles what is due before, rung or not. A request is taken out by any of them
 * under the lock, and answered outside.
 *
 * <p><b>The model's own rule.</b> A model may have a rule of its own for what goes into a batch. It is foreign code, so the
 * lock is given back while a batch is formed: see {@link StrategyBatcher}. What was said of wake-ups above holds as well
 * while an instance forms a batch, since that one looks again at its end.
 *
 * <p>The instance that became idle last is called first: its caches are warm. Under the rate limiter it is that which has had
 * the fewest turns; it may have to wait for its turn after it was called, is busy meanwhile in the sense above, and leaves the
 * requests in the queue until its turn has come.
 */
final class RequestQueue {
    /** So often is a batch begun anew while others come and go; then the first request goes alone, which it always may. */
    private static final int MOST_FORMINGS = 16;

    private final BatchPlanner planner;
    private final LongSupplier nanoTime;
    private final @Nullable ResponseOrder order;
    private final @Nullable StrategyBatcher strategy;
    private final DueAlarm alarm;
    private final ReentrantLock lock = new ReentrantLock();

    @GuardedBy("lock")
    private final WaitingRequests requests;

    @GuardedBy("lock")
    private final QueueView view;

    @GuardedBy("lock")
    private final Seats seats = new Seats(lock);

    /** How many places among the answers were given. */
    @GuardedBy("lock")
    private long places;

    @GuardedBy("lock")
    private boolean stopped;

    /**
     * Makes an empty queue.
     *
     * @param planner decides about batches
     * @param priorities the levels, and how many requests may wait on each for how long
     * @param equalInputs which requests may share a batch
     * @param order keeps the answers in the order in which requests leave the queue; {@code null} if any order will do
     * @param nanoTime the clock
     * @param timer an alarm of it is held until the queue is closed
     */
    RequestQueue(
            BatchPlanner planner,
            PriorityPolicy priorities,
            EqualInputs equalInputs,
            @Nullable ResponseOrder order,
            LongSupplier nanoTime,
            Timer timer) {
        this(planner, priorities, equalInputs, order, nanoTime, timer, null);
    }

    /**
     * Makes an empty queue for a model that may have a rule of its own.
     *
     * @param strategy forms batches by that rule; {@code null} if there is none
     */
    RequestQueue(
            BatchPlanner planner,
            PriorityPolicy priorities,
            EqualInputs equalInputs,
            @Nullable ResponseOrder order,
            LongSupplier nanoTime,
            Timer timer,
            @Nullable StrategyBatcher strategy) {
        this.planner = planner;
        this.order = order;
        this.strategy = strategy;
        this.nanoTime = nanoTime;
        this.requests = new WaitingRequests(priorities, equalInputs);
        this.view = requests.view();
        this.alarm = new DueAlarm(timer, this::ring);
    }

    /**
     * Gives an instance its place.
     *
     * @param lentRun runs the instance on a thread to which the seat is lent, and then calls {@link #giveBack}
     */
    Seat seat(Runnable lentRun) {
        return seat(lentRun, () -> 0);
    }

    /**
     * Gives an instance its place.
     *
     * @param lentRun runs the instance on a thread to which the seat is lent, and then calls {@link #giveBack}
     * @param load tells how much the instance has had of what is limited; must not take any lock
     */
    Seat seat(Runnable lentRun, LongSupplier load) {
        lock.lock();
        try {
            return seats.add(lentRun, load);
        } finally {
            lock.unlock();
        }
    }

    /**
     * Adds a request, unless it could not be executed any more.
     *
     * @param mayRun whether the caller runs an instance if one is idle and there is a batch for it
     * @return the seat of that instance with its batch, to be run by the caller at once; or else what became of the
     *     request
     */
    Admission offer(ScheduledRequest request, boolean mayRun) {
        Admission admission;
        Due next;
        lock.lock();
        try {
            admission = admit(request, mayRun);
            next = alarm.claim(requests.nextDue());
        } finally {
            lock.unlock();
        }
        alarm.set(next);
        return admission;
    }

    @GuardedBy("lock")
    private Admission admit(ScheduledRequest request, boolean mayRun) {
        if (stopped) {
            return Admission.Outcome.STOPPED;
        }
        if (seats.areGone()) {
            return Admission.Outcome.NO_INSTANCE;
        }
        if (!request.isWaiting()) { // withdrawn meanwhile, its memory given back
            return Admission.Outcome.ACCEPTED;
        }
        if (!requests.add(request)) {
            return Admission.Outcome.FULL;
        }
        long now = nanoTime.getAsLong(); // later than the request came if a cache was asked first
        if (mayRun && strategy == null && seats.mayLend() && !requests.hasHeavy()) {
            Seat seat = seats.lend();
            if (pull(seat, now)) {
                return seat;
            }
            seats.takeBack(seat);
        }
        callOne(now);
        return Admission.Outcome.ACCEPTED;
    }

    /** Handles what is due; called by the alarm. */
    private void ring() {
        List<Due> overdue = new ArrayList<>();
        Due next;
        lock.lock();
        try {
            alarm.rung();
            long now = nanoTime.getAsLong();
            requests.expire(now, overdue);
            callOne(now);
            next = alarm.claim(requests.nextDue());
        } finally {
            lock.unlock();
        }
        alarm.set(next);
        overdue.forEach(Due::answer);
    }

    /** Gives a request that is answered without having been queued its place among the answers, if they have an order. */
    void place(ScheduledRequest request) {
        if (order != null) {
            lock.lock();
            try {
                request.place(places++);
            } finally {
                lock.unlock();
            }
        }
    }

    /** Takes a request out that was answered, if it waits here. */
    void remove(ScheduledRequest request) {
        lock.lock();
        try {
            if (requests.remove(request) && seats.hasLeader()) {
                callOne(nanoTime.getAsLong()); // what is left may be a preferred size
            }
        } finally {
            lock.unlock();
        }
    }

    /** Returns what keeps the answers in order; {@code null} if any order will do. */
    @Nullable
    ResponseOrder order() {
        return order;
    }

    /** Returns the number of requests that wait. */
    int waiting() {
        lock.lock();
        try {
            return requests.length();
        } finally {
            lock.unlock();
        }
    }

    /**
     * Takes another batch for a seat that was lent, as {@link #poll} does, or gives the seat back.
     *
     * @param mayRun whether the caller would run another batch
     * @return whether there is another batch; if not, the caller must not run the instance any more
     */
    boolean giveBack(Seat seat, boolean mayRun) {
        lock.lock();
        try {
            long now = nanoTime.getAsLong();
            if (mayRun && !seat.retired && !requests.hasHeavy() && pull(seat, now)) {
                return true;
            }
            seats.takeBack(seat);
            if (stopped || seat.retired || seat.fatal != null) {
                seats.callIfWaiting(seat);
            } else {
                callOne(now);
            }
            return false;
        } finally {
            lock.unlock();
        }
    }

    /**
     * Waits for a batch or for requests whose time is over, and leaves them at the seat.
     *
     * @return {@code false} if there is nothing left to do, ever
     * @throws DeathWhileLent if the instance cannot go on after what came up while its seat was lent
     */
    boolean take(Seat seat) {
        lock.lock();
        try {
            long now = nanoTime.getAsLong();
            while (seat.retired || !pull(seat, now)) {
                if (seat.retired || (stopped && requests.length() == 0)) {
                    return false;
                }
                await(seat, now);
                if (seat.fatal != null) {
                    throw new DeathWhileLent(seat.fatal);
                }
                now = nanoTime.getAsLong();
            }
            return true;
        } finally {
            lock.unlock();
        }
    }

    /**
     * Waits until there is a batch, and leaves it in the queue: by the time it is to be executed it may be another one, or
     * none.
     *
     * @return {@code false} if there is nothing left to do, ever
     */
    boolean awaitWork(Seat seat) {
        lock.lock();
        try {
            long now = nanoTime.getAsLong();
            while (seat.retired || isForming() || planner.take(view, now, stopped) == 0) {
                if (seat.retired || (stopped && requests.length() == 0)) {
                    return false;
                }
                await(seat, now);
                now = nanoTime.getAsLong();
            }
            seats.callFirst(batches() - 1); // what this one leaves behind need not wait for its turn
            return true;
        } finally {
            lock.unlock();
        }
    }

    /** Says whether there is a batch. */
    boolean hasWork() {
        lock.lock();
        try {
            return !isForming() && planner.take(view, nanoTime.getAsLong(), stopped) > 0;
        } finally {
            lock.unlock();
        }
    }

    /** Does as {@link #take}, but returns {@code false} instead of waiting. */
    boolean poll(Seat seat) {
        lock.lock();
        try {
            return !seat.retired && pull(seat, nanoTime.getAsLong());
        } finally {
            lock.unlock();
        }
    }

    /** Takes no more requests; what waits goes at once. */
    void stop() {
        lock.lock();
        try {
            stopped = true;
            if (strategy != null) {
                strategy.putOff();
            }
            seats.callAll();
        } finally {
            lock.unlock();
        }
    }

    /** Has the instance of a seat take no more; its thread has to {@link #leave} then. */
    void retire(Seat seat) {
        lock.lock();
        try {
            seat.retired = true;
            if (!seats.callIfWaiting(seat)) { // it may have been called for what waits, and wait for its turn
                callOne(nanoTime.getAsLong());
            }
        } finally {
            lock.unlock();
        }
    }

    /** Takes all requests out that wait, to be answered by the caller. */
    List<ScheduledRequest> drain() {
        List<ScheduledRequest> drained = new ArrayList<>();
        lock.lock();
        try {
            requests.drainTo(drained);
        } finally {
            lock.unlock();
        }
        return drained;
    }

    /** Gives the alarm back; to be called once no request waits, nor ever will. */
    void close() {
        alarm.close();
    }

    /** Says whether requests are taken. */
    boolean isOpen() {
        lock.lock();
        try {
            return !stopped && !seats.areGone();
        } finally {
            lock.unlock();
        }
    }

    /** Says whether no more requests are taken since the model ends. */
    boolean isStopped() {
        lock.lock();
        try {
            return stopped;
        } finally {
            lock.unlock();
        }
    }

    /**
     * Takes a seat away whose instance will not come back.
     *
     * @return the requests that nobody is left to execute, to be answered by the caller
     */
    List<ScheduledRequest> leave() {
        List<ScheduledRequest> stranded = new ArrayList<>();
        lock.lock();
        try {
            seats.remove();
            if (seats.areGone()) {
                requests.drainTo(stranded);
            } else { // the call that woke this one may have been meant for what waits
                callOne(nanoTime.getAsLong());
            }
        } finally {
            lock.unlock();
        }
        return stranded;
    }

    @GuardedBy("lock")
    private boolean pull(Seat seat, long now) {
        requests.expire(now, seat.overdue);
        if (strategy == null) {
            int count;
            do {
                count = planner.take(view, now, stopped);
                takeFirst(seat, count);
            } while (count > 0 && seat.taken.isEmpty());
        } else {
            form(strategy, seat);
        }
        boolean found = !seat.taken.isEmpty() || !seat.overdue.isEmpty();
        if (found) { // if not, this instance waits for what is there, and needs no other
            callOne(strategy == null ? now : nanoTime.getAsLong());
        }
        return found;
    }

    @GuardedBy("lock")
    private void takeFirst(Seat seat, int count) {
        for (int i = 0; i < count; i++) {
            ScheduledRequest request = requests.poll();
            if (request != null && request.begin()) { // if not, it is about to be taken out by who answers it
                if (order != null) {
                    request.place(places++);
                }
                seat.taken.add(request);
            }
        }
    }

    /** Takes a batch that the model's own rule forms; what is overdue goes before it, since the rule takes its time. */
    @GuardedBy("lock")
    private void form(StrategyBatcher rule, Seat seat) {
        boolean again = seat.overdue.isEmpty();
        int formings = 0;
        while (again && rule.begin(requests)) {
            int count = 0;
            try {
                unlocked(rule::ask);
                long now = nanoTime.getAsLong();
                requests.expire(now, seat.overdue);
                boolean last = formings++ == MOST_FORMINGS;
                count = rule.plan(requests, now, stopped || last);
                count = last ? Math.max(1, count) : count;
                takeFirst(seat, count);
            } finally {
                unlocked(rule::end);
                again = rule.ended() || count > 0;
            }
            again &= seat.taken.isEmpty() && seat.overdue.isEmpty();
        }
        if (stopped) { // those that found a batch being formed have to look whether anything is left
            seats.callAll();
        }
    }

    @GuardedBy("lock")
    private void unlocked(Runnable foreign) {
        lock.unlock();
        try {
            foreign.run();
        } finally {
            lock.lock();
        }
    }

    @GuardedBy("lock")
    private boolean isForming() {
        return strategy != null && strategy.isForming();
    }

    @GuardedBy("lock")
    private void await(Seat seat, long now) {
        if (!seats.hasLeader() && requests.length() > 0 && !isForming()) {
            seats.lead(seat, planner.waitNanos(view, now));
        } else {
            seats.await(seat);
        }
    }

    /** Returns how many batches what waits makes at most. */
    @GuardedBy("lock")
    private long batches() {
        return planner.batches(requests.length(), requests.items());
    }

    /** Calls an instance if one more is needed for what waits. */
    @GuardedBy("lock")
    private void callOne(long now) {
        if (requests.length() == 0) {
            return;
        }
        if (strategy != null && isForming()) {
            strategy.putOff();
            return;
        }
        if (!seats.hasLeader()) {
            seats.callFirst(batches());
        } else if (strategy != null || planner.take(view, now, stopped) > 0) { // the rule is to be asked about each
            seats.callLeader();
        }
    }
}
