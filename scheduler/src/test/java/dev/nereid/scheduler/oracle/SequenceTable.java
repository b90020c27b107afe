package dev.nereid.scheduler.oracle;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.InferenceException;
import dev.nereid.api.statistics.FailureReason;
import dev.nereid.api.statistics.SequenceEndReason;
import dev.nereid.scheduler.queue.InstanceHandle;
import dev.nereid.scheduler.queue.OfferResult;
import dev.nereid.scheduler.queue.SequenceUse;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.scheduler.request.SchedulerErrors;
import dev.nereid.scheduler.statistics.SequenceEnds;
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
final class SequenceTable {
    private static final Logger LOG = LoggerFactory.getLogger(SequenceTable.class);

    private final SequenceLock lock;
    private final LongSupplier nanoTime;
    private final SequenceTimes times;
    private final SequenceEnds ends;

    /** The sequences to which requests may be added. */
    private final Map<Sequence.Id, LiveSequence> live = new HashMap<>();

    private final SequencePlacement placement;
    private final SequenceRemoval removal;
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
     * @param times the expiries of sequences and requests
     * @param ends counts the sequences that end
     * @param whenIdle frees memory that no sequence needs; called without the lock, whenever the last one has ended
     */
    SequenceTable(SequenceLock lock, LongSupplier nanoTime, SequenceTimes times, SequenceEnds ends, Runnable whenIdle) {
        this.whenIdle = whenIdle;
        this.lock = lock;
        this.nanoTime = nanoTime;
        this.times = times;
        this.ends = ends;
        this.placement = new SequencePlacement(nanoTime, times);
        this.removal = new SequenceRemoval(this, placement);
    }

    /** Returns the instances, their slots, and the backlog. */
    SequencePlacement placement() {
        return placement;
    }

    /** Returns the removal of sequences by instance. */
    SequenceRemoval removal() {
        return removal;
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
        long now = nanoTime.getAsLong();
        InstanceHandle acquired = mayRun ? instance.acquire(now) : null;
        if (acquired == null) {
            instance.wakeForWork(now);
        }
        return acquired;
    }

    private void append(LiveSequence sequence, SequenceEntry entry, long now) {
        times.removeIdle(sequence);
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
        removal.refuseStranded();
    }

    private void addDeadline(SequenceEntry entry) {
        OptionalLong deadline = entry.checked().options().deadlineNanos();
        if (deadline.isPresent()) {
            entry.deadline = new Expiry(deadline.getAsLong(), () -> rejectLater(entry, SchedulerErrors.cancelled()));
            times.add(entry.deadline);
        }
    }

    /**
     * Adds a rescheduled request, before the others of its sequence. The sequence keeps its slot.
     *
     * @param paused whether it waits for {@link #resume}
     */
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
        removal.refuseStranded();
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
        instance.wakeForWork(now);
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
        if (sequence.expiry == null || nanos - sequence.expiry.nanos < 0) {
            times.remove(sequence.expiry);
            sequence.expiry = new Expiry(nanos, () -> expire(sequence));
            times.add(sequence.expiry);
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
            sequence.instance.wakeForWork(now);
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
        times.remove(entry.deadline);
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
        times.removeIdle(sequence);
        times.remove(sequence.expiry);
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

    boolean isStopped() {
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
                instance.wakeForWork(now);
            }
        } else if (sequence.over || stopped) {
            endAfterWaiting(sequence, sequence.over ? SequenceEndReason.END : SequenceEndReason.UNLOADED);
        } else {
            times.addIdle(sequence, now);
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

    /** Ends the expired sequences, and rejects the expired requests. */
    void expire() {
        long now = nanoTime.getAsLong();
        times.expire(now, sequence -> {
            if (sequence.hasResponded()) { // its idle time begins with the end of its sender, or up to one later
                times.addIdle(sequence, now);
            } else {
                endAfterWaiting(sequence, SequenceEndReason.IDLE);
            }
        });
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
        removal.refuseStranded();
    }

    boolean isLeaving() {
        return leaving;
    }

    /** Ends idle sequences now, and others when they are idle. */
    void stop() {
        stopped = true;
        for (LiveSequence one = times.idle().first();
                one != null;
                one = times.idle().first()) {
            endAfterWaiting(one, SequenceEndReason.UNLOADED);
        }
        placement.instances().forEach(SequenceInstance::wakeThread);
        leave();
    }

    /** Removes all waiting requests. Their sequences end. */
    List<ScheduledRequest> drain() {
        List<ScheduledRequest> removed = new ArrayList<>(waiting);
        removal.drain(live.values(), removed);
        return removed;
    }
}
