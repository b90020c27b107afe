package dev.nereid.scheduler.sequence;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.InferenceException;
import dev.nereid.api.statistics.FailureReason;
import dev.nereid.api.statistics.SequenceEndReason;
import dev.nereid.scheduler.queue.Deadline;
import dev.nereid.scheduler.queue.DeadlineHeap;
import dev.nereid.scheduler.queue.DeadlineTimer;
import dev.nereid.scheduler.queue.InstanceHandle;
import dev.nereid.scheduler.queue.OfferResult;
import dev.nereid.scheduler.queue.QueueLock;
import dev.nereid.scheduler.queue.SequenceUse;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.scheduler.request.SchedulerErrors;
import dev.nereid.scheduler.statistics.SequenceEnds;
import dev.nereid.scheduler.time.Timer;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.SequenceEnd;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Holds the live sequences of one model, with or without a slot. Guarded by the lock of the sequences: the caller holds
 * it, unless a method says otherwise.
 *
 * <p>A sequence moves one way: to the backlog, if no slot is free; to a slot, which it keeps until its last request is
 * taken; to its end, when that request is executed. {@link #finishIfDone} is the only place that ends a sequence.
 */
final class SequenceTable implements SequenceInstance.Owner {
    private static final Logger LOG = LoggerFactory.getLogger(SequenceTable.class);

    private final QueueLock lock;
    private final LongSupplier nanoTime;
    private final SequenceEnds ends;
    private final DeadlineTimer timer;
    private final long maxIdleNanos;

    /**
     * The sequences without a request, the one that ends first in front: all may be idle for the same time, so that the list
     * has them in the order of their end.
     */
    private final LiveSequence.Chain idle = new LiveSequence.Chain();

    /** The expiries of sequences in the backlog, and of requests with a deadline, with what happens then. */
    private final DeadlineHeap<Runnable> deadlines = new DeadlineHeap<>();

    /** The sequences to which requests may be added. */
    private final Map<Sequence.Id, LiveSequence> live = new HashMap<>();

    private final SequencePlacement placement;
    private int waiting;

    /** The number of sequences that have not ended. */
    private int unfinished;

    /** Frees memory that no sequence needs, whenever none lives. */
    private final Runnable whenIdle;

    /** The action when no sequence lives any more; {@code null} for none. */
    private @Nullable Runnable whenEmpty;

    private boolean stopped;

    /** {@code true} if requests that wait for an instance that takes no batches are refused. */
    private boolean leaving;

    /**
     * Creates a table without sequences and instances.
     *
     * @param timer one of its timeouts is held until the table is closed
     * @param maxIdleNanos how long a sequence may have no request
     * @param ends counts the sequences that end
     * @param whenIdle frees memory that no sequence needs; called without the lock, whenever the last one has ended
     */
    SequenceTable(
            QueueLock lock,
            LongSupplier nanoTime,
            Timer timer,
            long maxIdleNanos,
            SequenceEnds ends,
            Runnable whenIdle) {
        this.whenIdle = whenIdle;
        this.lock = lock;
        this.nanoTime = nanoTime;
        this.maxIdleNanos = maxIdleNanos;
        this.ends = ends;
        this.placement = new SequencePlacement(nanoTime, deadlines);
        this.timer = new DeadlineTimer(timer, this::onTimeout);
    }

    /** Returns the instances, their slots, and the backlog. */
    SequencePlacement placement() {
        return placement;
    }

    /**
     * Adds a request to its sequence.
     *
     * @param fresh the sequence that the request starts, unless a sequence of that id lives; {@code null} if it starts
     *     none
     * @param iterative whether the request is a sequence, so that its cancellation ends no other one
     */
    OfferResult add(SequenceEntry entry, @Nullable LiveSequence fresh, boolean iterative) {
        if (!placement.hasInstances()) {
            return OfferResult.Outcome.NO_INSTANCE;
        }
        LiveSequence found = live.get(entry.id());
        if (!entry.request().isWaiting()) { // cancelled before it was here
            if (!iterative) {
                cancel(entry.id());
            }
            return OfferResult.Outcome.ACCEPTED;
        }
        if (stopped && (entry.starts() || found == null)) {
            return new OfferResult.Refused(SequenceErrors.stopped());
        }
        LiveSequence sequence = found == null ? fresh : found;
        if (sequence == null) {
            return new OfferResult.Refused(SequenceErrors.notStarted(entry.checked(), entry.id()));
        }
        long now = nanoTime.getAsLong(); // fails before anything is changed
        if (found == null) {
            live.put(entry.id(), sequence);
            unfinished++;
        } else if (fresh != null) {
            lock.later(() -> LOG.atWarn()
                    .addKeyValue("model", entry.checked().model())
                    .addKeyValue("sequence", SequenceErrors.text(entry.id()))
                    .log(
                            "sequence starts again before its end (model '{}', sequence {})",
                            entry.checked().model(),
                            SequenceErrors.text(entry.id())));
        }
        append(sequence, entry, now);
        placement.checkHold(waiting);
        return OfferResult.Outcome.ACCEPTED;
    }

    /** Runs or wakes the instance of a sequence to which a request was added. */
    @Nullable
    InstanceHandle serve(LiveSequence sequence, boolean mayRun) {
        SequenceInstance instance = sequence.instance;
        if (instance == null) {
            return null;
        }
        return instance.source().serve(mayRun, nanoTime.getAsLong());
    }

    private void append(LiveSequence sequence, SequenceEntry entry, long now) {
        idle.remove(sequence);
        sequence.append(entry);
        waiting++;
        if (entry.ends()) {
            forget(sequence);
        }
        addDeadline(entry);
        if (sequence.instance != null) {
            sequence.instance.count(entry.request(), 1);
            sequence.instance.changed(sequence, now);
        } else {
            if (sequence.list != placement.backlog()) {
                placement.place(sequence, now);
            }
            if (sequence.instance == null) {
                limit(sequence, entry, now);
            }
        }
        refuseStranded();
    }

    private void addDeadline(SequenceEntry entry) {
        OptionalLong deadline = entry.checked().options().deadlineNanos();
        if (deadline.isPresent()) {
            entry.deadline = new Deadline<>(
                    () -> rejectLater(entry, SchedulerErrors.cancelled()),
                    Deadline.Cause.DEADLINE,
                    deadline.getAsLong());
            add(entry.deadline);
        }
    }

    /** Adds a rescheduled request first to its sequence, which keeps its slot; {@code paused} until {@link #resume}. */
    void addAgain(SequenceEntry entry, boolean paused) {
        LiveSequence sequence = requireNonNull(entry.home);
        SequenceInstance instance = sequence.instance;
        sequence.busy = false;
        if (instance == null) { // it is gone
            rejectLater(entry, SequenceErrors.instanceGone(entry.checked(), sequence.id()));
        }
        if (instance == null || !entry.request().isWaiting()) { // if not, it was cancelled meanwhile
            endIteration(sequence, SequenceEndReason.CANCELLED);
            return;
        }
        sequence.prepend(entry);
        sequence.paused = paused;
        waiting++;
        instance.count(entry.request(), 1);
        addDeadline(entry);
        if (!paused) { // else until its client reads, or front ends end a connection that does not
            resume(sequence, instance);
        }
        refuseStranded();
    }

    /** Ends the pause of a rescheduled request: its client reads. */
    void resume(SequenceEntry entry) {
        LiveSequence sequence = entry.sequence;
        SequenceInstance instance = sequence == null ? null : sequence.instance;
        if (sequence != null && instance != null && sequence.head() == entry) {
            sequence.paused = false;
            resume(sequence, instance);
        }
    }

    private void resume(LiveSequence sequence, SequenceInstance instance) {
        long now = nanoTime.getAsLong();
        instance.changed(sequence, now);
        instance.source().wake(now);
    }

    /** Ends an iterative sequence after its request; a waiting one of the same id is next. */
    void endIteration(LiveSequence sequence, SequenceEndReason reason) {
        sequence.busy = false;
        if (sequence.head() == null) {
            endAfterWaiting(sequence, reason);
            return;
        }
        ends.add(reason);
        if (reason != SequenceEndReason.END && sequence.started && sequence.instance != null) {
            sequence.instance.sequenceEnded(new InstanceHandle.EndedSequence(sequence.id(), forBackend(reason)));
        }
        sequence.started = false;
        becameFree(sequence);
    }

    /** Lowers the time at which a sequence in the backlog expires, if the request has a timeout. */
    private void limit(LiveSequence sequence, SequenceEntry entry, long now) {
        long micros = entry.checked().options().timeoutMicros();
        if (micros == 0 || Long.compareUnsigned(micros, TimeUnit.NANOSECONDS.toMicros(Long.MAX_VALUE / 4)) > 0) {
            return;
        }
        long nanos = now + TimeUnit.MICROSECONDS.toNanos(micros);
        if (sequence.expiry == null || nanos - sequence.expiry.nanos() < 0) {
            deadlines.remove(sequence.expiry);
            sequence.expiry = new Deadline<>(() -> expire(sequence), Deadline.Cause.TIMEOUT, nanos);
            add(sequence.expiry);
        }
    }

    // Requests that leave.

    /** Removes a request, and cancels the requests behind it that belong to the same sequence, which ends. */
    void cancel(LiveSequence sequence, SequenceEntry entry) {
        SequenceEntry following = entry.next;
        SequenceEntry before = unlink(sequence, entry);
        while (following != null && !following.starts()) {
            SequenceEntry one = following;
            following = one.next;
            unlink(sequence, one);
            rejectLater(one, SchedulerErrors.cancelled());
        }
        if (following == null) {
            endAfterWaiting(sequence, SequenceEndReason.CANCELLED);
            return;
        }
        if (entry.starts()) { // the one that starts next has its place
            ends.add(SequenceEndReason.CANCELLED);
            following.endBefore = entry.endBefore;
        } else {
            following.endBefore = SequenceEndReason.CANCELLED;
        }
        if (before == null && sequence.instance != null) {
            long now = nanoTime.getAsLong();
            sequence.instance.changed(sequence, now);
            sequence.instance.source().wake(now);
        }
    }

    /**
     * Ends a sequence after the requests that wait, if it lives. A request that was to follow them, or to start another
     * sequence in its place, was cancelled before it was added.
     */
    void cancel(Sequence.Id id) {
        LiveSequence sequence = live.get(id);
        if (sequence != null) {
            endAfterWaiting(sequence, SequenceEndReason.CANCELLED);
        }
    }

    /** Removes an iterative request. The requests behind it are separate sequences. */
    void cancelIteration(LiveSequence sequence, SequenceEntry entry) {
        boolean goesFirst = !sequence.busy && sequence.head() == entry;
        unlink(sequence, entry);
        if (goesFirst) {
            endIteration(sequence, SequenceEndReason.CANCELLED);
        } else {
            ends.add(SequenceEndReason.CANCELLED);
        }
    }

    void endAfterWaiting(LiveSequence sequence, SequenceEndReason reason) {
        sequence.reason = sequence.reason == null ? reason : sequence.reason;
        forget(sequence);
        if (sequence.instance != null) {
            sequence.instance.changed(sequence, nanoTime.getAsLong());
        }
        finishIfDone(sequence);
    }

    /** Removes a request from its sequence, and returns the one before it. */
    @Nullable
    SequenceEntry unlink(LiveSequence sequence, SequenceEntry entry) {
        SequenceEntry before = sequence.remove(entry);
        left(sequence, entry);
        return before;
    }

    /** Ends the count of a request that is not in its sequence any more. */
    private void left(LiveSequence sequence, SequenceEntry entry) {
        waiting--;
        deadlines.remove(entry.deadline);
        entry.deadline = null;
        if (sequence.instance != null) {
            sequence.instance.count(entry.request(), -1);
        }
    }

    /** Completes a request that was removed, when the lock is released. */
    void rejectLater(SequenceEntry entry, InferenceException error) {
        rejectLater(entry.request(), error);
    }

    /** Completes a request that was removed, when the lock is released. */
    void rejectLater(ScheduledRequest request, InferenceException error) {
        FailureReason reason = error.code() == ErrorCode.CANCELLED ? FailureReason.CANCELED : FailureReason.REJECTED;
        lock.later(() -> request.reject(error, reason));
    }

    /** Frees slot and memory of a sequence that has ended and has no more requests. */
    private void finishIfDone(LiveSequence sequence) {
        if (sequence.finished || sequence.busy || sequence.head() != null) {
            return;
        }
        sequence.finished = true;
        idle.remove(sequence);
        deadlines.remove(sequence.expiry);
        placement.backlog().remove(sequence);
        unfinished--;
        SequenceEndReason reason = requireNonNull(sequence.reason);
        ends.add(reason);
        if (sequence.instance != null && sequence.started && reason != SequenceEndReason.END) {
            sequence.instance.sequenceEnded(new InstanceHandle.EndedSequence(sequence.id(), forBackend(reason)));
        }
        placement.vacate(sequence);
        sequence.release(lock::later);
        if (unfinished == 0) {
            lock.later(whenIdle);
        }
    }

    /** Returns the reason, for the backend, why a sequence ended without its last request. */
    static SequenceEnd forBackend(SequenceEndReason reason) {
        return switch (reason) {
            case IDLE -> SequenceEnd.IDLE;
            case CANCELLED -> SequenceEnd.CANCELLED;
            case REPLACED -> SequenceEnd.REPLACED;
            case END, EXPIRED, UNLOADED, INSTANCE_LOST -> SequenceEnd.UNLOADED;
        };
    }

    // What executions call.

    @Override
    public void register(SequenceInstance instance) {
        placement.register(instance);
    }

    @Override
    public void placeBacklog() {
        placement.placeBacklog();
    }

    @Override
    public boolean isStopped() {
        return stopped;
    }

    /** Removes the request that goes first, which has begun. */
    void poll(LiveSequence sequence) {
        left(sequence, sequence.poll());
    }

    /** Goes on with a sequence after the end of its execution. */
    void becameFree(LiveSequence sequence) {
        long now = nanoTime.getAsLong();
        if (sequence.head() != null) {
            SequenceInstance instance = sequence.instance;
            if (instance != null) {
                instance.changed(sequence, now);
                instance.source().wake(now);
            }
        } else if (sequence.over || stopped) {
            endAfterWaiting(sequence, sequence.over ? SequenceEndReason.END : SequenceEndReason.UNLOADED);
        } else {
            addIdle(sequence, now);
        }
    }

    /** Rejects the requests of a sequence that waited too long for a slot. */
    private void expire(LiveSequence sequence) {
        for (SequenceEntry entry = sequence.head(); entry != null; entry = sequence.head()) {
            unlink(sequence, entry);
            rejectLater(entry, SequenceErrors.expired());
        }
        endAfterWaiting(sequence, SequenceEndReason.EXPIRED);
    }

    // Time, and the end.

    private void add(Deadline<Runnable> deadline) {
        deadlines.add(deadline);
        scheduleNext();
    }

    /** Adds a sequence without a request, from now on. */
    private void addIdle(LiveSequence sequence, long now) {
        sequence.nanos = now + maxIdleNanos;
        idle.add(sequence);
        scheduleNext();
    }

    /** Ends the expired sequences, and rejects the expired requests. Called without the lock. */
    private void onTimeout() {
        lock.lock();
        try {
            timer.onTimeout();
            long now = nanoTime.getAsLong();
            for (LiveSequence first = firstIdle(); first != null && now - first.nanos >= 0; first = firstIdle()) {
                idle.remove(first);
                expireIdle(first, now);
            }
            for (Deadline<Runnable> next = deadlines.peek();
                    next != null && next.isPast(now);
                    next = deadlines.peek()) {
                deadlines.remove(next);
                next.waiting().run();
            }
            scheduleNext();
        } finally {
            lock.unlock();
        }
    }

    private void expireIdle(LiveSequence sequence, long now) {
        if (sequence.hasResponded()) { // its idle time begins with the end of its sender, or up to one later
            addIdle(sequence, now);
        } else {
            endAfterWaiting(sequence, SequenceEndReason.IDLE);
        }
    }

    /** Returns the idle sequence that ends first; {@code null} if none ends. */
    private @Nullable LiveSequence firstIdle() {
        return maxIdleNanos < Deadline.NEVER ? idle.first() : null;
    }

    private void scheduleNext() {
        LiveSequence first = firstIdle();
        if (first != null) {
            schedule(first.nanos);
        }
        Deadline<Runnable> next = deadlines.peek();
        if (next != null) {
            schedule(next.nanos());
        }
    }

    private void schedule(long nanos) {
        if (timer.reserve(nanos)) {
            lock.later(() -> timer.schedule(nanos));
        }
    }

    /** Closes the timeout; called once, without the lock. */
    void close() {
        timer.close();
    }

    boolean has(Sequence.Id id) {
        return live.containsKey(id);
    }

    /** Ends a sequence after the requests that wait, if it lives. */
    void replace(Sequence.Id id) {
        LiveSequence sequence = live.get(id);
        if (sequence != null) {
            endAfterWaiting(sequence, SequenceEndReason.REPLACED);
        }
    }

    /** Runs an action when no sequence lives any more; returns {@code false} if none lives now. */
    boolean whenEmpty(Runnable action) {
        boolean lives = !live.isEmpty();
        whenEmpty = lives ? action : null;
        return lives;
    }

    /** Removes a sequence: no requests are added to it any more. */
    private void forget(LiveSequence sequence) {
        sequence.over = true;
        Runnable action = whenEmpty;
        if (live.remove(sequence.id(), sequence) && live.isEmpty() && action != null) {
            whenEmpty = null;
            lock.later(action);
        }
    }

    int waiting() {
        return waiting;
    }

    /** Returns the number of sequences to which requests may be added. */
    int sequences() {
        return live.size();
    }

    SequenceUse use(SequenceUse.States states, Map<SequenceEndReason, Long> ended) {
        return placement.use(unfinished, stopped, states, ended);
    }

    /** From now on, requests that wait for an instance that takes no batches are refused. */
    void leave() {
        leaving = true;
        refuseStranded();
    }

    /** Ends idle sequences now, and others when they are idle. */
    void stop() {
        stopped = true;
        for (LiveSequence one = idle.first(); one != null; one = idle.first()) {
            endAfterWaiting(one, SequenceEndReason.UNLOADED);
        }
        long now = nanoTime.getAsLong();
        for (SequenceInstance instance : placement.instances()) {
            instance.source().wakeAll();
            instance.source().wake(now); // held requests may be taken now
        }
        leave();
    }

    // Instances that are gone, and the end of the model.

    @Override
    public List<ScheduledRequest> removeWaiting(Slots slots, SequenceEndReason reason) {
        List<ScheduledRequest> removed = new ArrayList<>();
        for (int slot = slots.limit() - 1; slot >= 0; slot--) {
            LiveSequence sequence = slot < slots.limit() ? slots.get(slot) : null;
            if (sequence != null && sequence.head() != null) {
                removeAll(sequence, removed);
                endAfterWaiting(sequence, reason);
            }
        }
        return removed;
    }

    private void removeAll(LiveSequence sequence, List<ScheduledRequest> removed) {
        for (SequenceEntry entry = sequence.head(); entry != null; entry = sequence.head()) {
            unlink(sequence, entry);
            removed.add(entry.request());
        }
    }

    @Override
    public void endAll(Slots slots) {
        for (int slot = slots.limit() - 1; slot >= 0; slot--) {
            LiveSequence sequence = slot < slots.limit() ? slots.get(slot) : null;
            if (sequence == null) {
                continue;
            }
            for (SequenceEntry entry = sequence.head(); entry != null; entry = sequence.head()) {
                unlink(sequence, entry);
                rejectLater(entry, SequenceErrors.instanceGone(entry.checked(), sequence.id()));
            }
            endAfterWaiting(sequence, SequenceEndReason.INSTANCE_LOST);
            if (sequence.instance != null) { // its last request is in execution
                placement.vacate(sequence);
            }
        }
    }

    @Override
    public void refuseStranded() {
        if (!leaving) {
            return;
        }
        List<ScheduledRequest> stranded = new ArrayList<>(0);
        if (placement.areAllUnavailable()) {
            drainBacklog(stranded);
        }
        for (SequenceInstance instance : placement.instances()) {
            if (instance.isUnavailable()) {
                stranded.addAll(instance.removeWaiting(SequenceEndReason.UNLOADED));
            }
        }
        stranded.forEach(request -> rejectLater(request, SchedulerErrors.stranded(request.checked())));
    }

    @Override
    public List<ScheduledRequest> deregister(SequenceInstance instance) {
        placement.deregister(instance);
        List<ScheduledRequest> left = new ArrayList<>();
        if (!placement.hasInstances()) {
            drainBacklog(left);
        }
        refuseStranded();
        return left;
    }

    private void drainBacklog(List<ScheduledRequest> removed) {
        LiveSequence.Chain backlog = placement.backlog();
        for (LiveSequence one = backlog.first(); one != null; one = backlog.first()) {
            removeAll(one, removed);
            endAfterWaiting(one, SequenceEndReason.UNLOADED);
        }
    }

    /** Removes all waiting requests. Their sequences end. */
    List<ScheduledRequest> drain() {
        List<ScheduledRequest> removed = new ArrayList<>(waiting);
        drainBacklog(removed);
        for (LiveSequence one : List.copyOf(live.values())) {
            removeAll(one, removed);
            endAfterWaiting(one, SequenceEndReason.UNLOADED);
        }
        placement.instances().forEach(instance -> removed.addAll(instance.removeWaiting(SequenceEndReason.UNLOADED)));
        return removed;
    }
}
