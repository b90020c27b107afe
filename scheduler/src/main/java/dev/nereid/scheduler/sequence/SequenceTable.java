package dev.nereid.scheduler.sequence;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.InferenceException;
import dev.nereid.api.NamedTensor;
import dev.nereid.api.statistics.FailureReason;
import dev.nereid.api.statistics.SequenceEndReason;
import dev.nereid.scheduler.queue.EndedSequence;
import dev.nereid.scheduler.queue.InstanceHandle;
import dev.nereid.scheduler.queue.OfferResult;
import dev.nereid.scheduler.queue.SequenceUse;
import dev.nereid.scheduler.request.ExecutionInputs;
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
 * The sequences of one model that live, those without a slot among them, and the queues of the instances. Guarded by the
 * lock of the sequences: the caller holds it, unless a method says otherwise.
 *
 * <p>A sequence moves one way: to the backlog, if no slot is free; to a slot, which it keeps until its last request is
 * taken; to its end, when that request is executed. {@link #finishIfDone} is the only place that ends one.
 */
final class SequenceTable {
    private static final Logger LOG = LoggerFactory.getLogger(SequenceTable.class);

    private final SequenceLock lock;
    private final SequencePlan plan;
    private final LongSupplier nanoTime;
    private final SequenceInputs inputs;
    private final SequenceTimes times;
    private final SequenceEnds ends;

    /** The sequences to which requests may be added. */
    private final Map<Sequence.Id, LiveSequence> live = new HashMap<>();

    private final SequenceList backlog = new SequenceList();
    private final List<SequenceInstance> instances = new ArrayList<>();
    private int waiting;

    /** The number of sequences that have not ended. */
    private int unfinished;

    /** Until when no instance takes a batch; {@code null} for no hold. */
    private @Nullable SequenceHold hold;

    /** What to do when no sequence lives any more; {@code null} for nothing. */
    private @Nullable Runnable whenEmpty;

    private boolean stopped;

    /**
     * Creates a table without sequences and instances.
     *
     * @param inputs makes the inputs of executions
     * @param times ends what expires
     * @param ends counts the sequences that end
     */
    SequenceTable(
            SequenceLock lock,
            LongSupplier nanoTime,
            SequencePlan plan,
            SequenceInputs inputs,
            SequenceTimes times,
            SequenceEnds ends) {
        this.lock = lock;
        this.plan = plan;
        this.nanoTime = nanoTime;
        this.inputs = inputs;
        this.times = times;
        this.ends = ends;
    }

    /**
     * Adds a request to its sequence.
     *
     * @param fresh the sequence that the request starts, if none of that id lives; {@code null} if it starts none
     */
    OfferResult add(SequenceEntry entry, @Nullable LiveSequence fresh) {
        if (instances.isEmpty()) {
            return OfferResult.Outcome.NO_INSTANCE;
        }
        LiveSequence found = live.get(entry.id());
        if (stopped && (entry.starts() || found == null)) {
            return new OfferResult.Refused(SequenceErrors.stopped());
        }
        LiveSequence sequence = found == null ? fresh : found;
        if (sequence == null) {
            return new OfferResult.Refused(SequenceErrors.notStarted(entry.checked(), entry.id()));
        }
        if (!entry.request().isWaiting()) { // cancelled before it was here
            if (fresh == null) {
                endAfterWaiting(sequence, SequenceEndReason.CANCELLED);
            }
            return OfferResult.Outcome.ACCEPTED;
        }
        if (found == null) {
            live.put(entry.id(), sequence);
            unfinished++;
        } else if (fresh != null) {
            lock.later(() -> LOG.atWarn()
                    .addKeyValue("model", entry.checked().model())
                    .addKeyValue("sequence", SequenceErrors.text(entry.id()))
                    .log("sequence starts again before its end"));
        }
        append(sequence, entry, nanoTime.getAsLong());
        if (hold != null && hold.isOver(waiting, backlog)) {
            endHold();
        }
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
        OptionalLong deadline = entry.checked().options().deadlineNanos();
        if (deadline.isPresent()) {
            entry.deadline = new Expiry(deadline.getAsLong(), () -> rejectLater(entry, SchedulerErrors.cancelled()));
            times.add(entry.deadline);
        }
        if (sequence.instance != null) {
            sequence.instance.count(entry.request(), 1);
            sequence.instance.changed(sequence, now);
        } else if (sequence.list == backlog) {
            limit(sequence, entry, now);
        } else {
            SequenceInstance free = withFreeSlot();
            if (free == null) {
                backlog.add(sequence);
                limit(sequence, entry, now);
            } else {
                place(sequence, free, now);
            }
        }
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

    /** Returns the instance with the lowest free slot; {@code null} if no slot is free. */
    private @Nullable SequenceInstance withFreeSlot() {
        SequenceInstance best = null;
        int lowest = Integer.MAX_VALUE;
        for (int i = 0; i < instances.size(); i++) {
            int slot = instances.get(i).lowestFree();
            if (slot < lowest) {
                lowest = slot;
                best = instances.get(i);
            }
        }
        return best;
    }

    /** Gives a slot to a sequence that is in no list. */
    private void place(LiveSequence sequence, SequenceInstance instance, long now) {
        times.remove(sequence.expiry);
        sequence.expiry = null;
        instance.place(sequence);
        for (SequenceEntry entry = sequence.head(); entry != null; entry = entry.next) {
            instance.count(entry.request(), 1);
        }
        instance.changed(sequence, now);
    }

    /** Gives free slots to the oldest sequences of the backlog. */
    void placeBacklog(long now) {
        SequenceInstance free = backlog.first() == null ? null : withFreeSlot();
        while (free != null) {
            place(backlog.poll(), free, now);
            free.wakeForWork(now);
            free = backlog.first() == null ? null : withFreeSlot();
        }
    }

    // Requests that leave.

    /** Removes a request, and cancels those behind it that belong to the same sequence, which ends. */
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
        if (entry.starts()) {
            ends.add(SequenceEndReason.CANCELLED); // the one that starts next has its place
        }
        if (before == null && sequence.instance != null) {
            long now = nanoTime.getAsLong();
            sequence.instance.changed(sequence, now);
            sequence.instance.wakeForWork(now);
        }
    }

    /** Ends a sequence after the requests that wait. */
    private void endAfterWaiting(LiveSequence sequence, SequenceEndReason reason) {
        sequence.reason = sequence.reason == null ? reason : sequence.reason;
        forget(sequence);
        if (sequence.instance != null) {
            sequence.instance.changed(sequence, nanoTime.getAsLong());
        }
        finishIfDone(sequence);
    }

    /** Removes a request from its sequence, and returns the one before it. */
    private @Nullable SequenceEntry unlink(LiveSequence sequence, SequenceEntry entry) {
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

    private void rejectLater(SequenceEntry entry, InferenceException error) {
        FailureReason reason = error.code() == ErrorCode.CANCELLED ? FailureReason.CANCELED : FailureReason.REJECTED;
        lock.later(() -> {
            try {
                entry.request().reject(error, reason);
            } catch (RuntimeException | Error e) { // such as no memory: the others are not affected
                entry.request().failSafely(e);
            }
        });
    }

    /** Frees slot and memory of a sequence that has ended and has no request left. */
    private void finishIfDone(LiveSequence sequence) {
        if (sequence.finished || sequence.busy || sequence.head() != null) {
            return;
        }
        sequence.finished = true;
        times.removeIdle(sequence);
        times.remove(sequence.expiry);
        backlog.remove(sequence);
        unfinished--;
        SequenceEndReason reason = requireNonNull(sequence.reason);
        ends.add(reason);
        if (sequence.instance != null && sequence.started) {
            sequence.instance.sequenceEnded(new EndedSequence(sequence.id(), forBackend(reason)));
        }
        vacate(sequence);
        lock.later(sequence::release);
    }

    /** Returns why a sequence ended without its last request. */
    private static SequenceEnd forBackend(SequenceEndReason reason) {
        return switch (reason) {
            case IDLE -> SequenceEnd.IDLE;
            case CANCELLED -> SequenceEnd.CANCELLED;
            case REPLACED -> SequenceEnd.REPLACED;
            case END, EXPIRED, UNLOADED, INSTANCE_LOST -> SequenceEnd.UNLOADED;
        };
    }

    /** Frees the slot of a sequence, if it has one, for the backlog. */
    private void vacate(LiveSequence sequence) {
        SequenceInstance instance = sequence.instance;
        if (instance != null) {
            instance.vacate(sequence);
            placeBacklog(nanoTime.getAsLong());
        }
    }

    // What instances call.

    /** Returns the number of deferred executions at which an instance takes no batch. */
    int maxDeferred(InstanceHandle handle) {
        return plan.isDirect() ? 1 : handle.maxDeferred();
    }

    boolean isStopped() {
        return stopped;
    }

    void register(SequenceInstance instance) {
        instances.add(instance);
    }

    /** Holds batches back until requests wait. */
    void hold(int requests, int backlogged) {
        hold = requests == 0 && backlogged == 0 ? null : new SequenceHold(requests, backlogged);
    }

    /** Returns whether no instance may take a batch. */
    boolean isHeld() {
        return hold != null && !stopped;
    }

    /** Lets all instances take batches. */
    void endHold() {
        hold = null;
        long now = nanoTime.getAsLong();
        for (SequenceInstance instance : instances) {
            instance.endHold();
            instance.wakeForWork(now);
        }
    }

    /** Returns the next request of a sequence that is ready. */
    SequenceEntry head(LiveSequence sequence) {
        SequenceEntry head = sequence.head();
        if (head == null) {
            throw new IllegalStateException("sequence: no request waits (expected: one)");
        }
        return head;
    }

    /**
     * Begins the next request of a sequence.
     *
     * @param row its place in the batch; {@link SequenceExecution#ANY_ROW} if others may take it
     * @param handle receives it
     * @return {@code false} if it is completed: the thread that completes it is about to remove it
     */
    boolean begin(LiveSequence sequence, int row, InstanceHandle handle) {
        SequenceEntry entry = head(sequence);
        List<NamedTensor> added = inputs.of(sequence, entry, memory -> lock.later(memory::release));
        ScheduledRequest request = entry.request();
        SequenceExecution execution = new SequenceExecution(this, sequence, request, added, inputs.controls(), row);
        handle.taken().add(execution);
        if (!request.begin()) {
            handle.taken().removeLast();
            return false;
        }
        request.delivery().takePlace();
        sequence.poll();
        left(sequence, entry);
        if (entry.starts() && sequence.started) {
            handle.ended().add(new EndedSequence(sequence.id(), SequenceEnd.REPLACED));
            ends.add(SequenceEndReason.REPLACED);
        }
        sequence.started = true;
        sequence.busy = true;
        if (entry.ends()) {
            vacate(sequence);
        }
        return true;
    }

    /** Creates a null request for a place without a request. */
    ExecutionInputs nullRequest(ExecutionInputs like) {
        return inputs.nullRequest(like);
    }

    /** Ends an execution of a request; called by the thread that ends it, without the lock. */
    void released(LiveSequence sequence) {
        lock.lock();
        try {
            sequence.busy = false;
            becameFree(sequence, nanoTime.getAsLong());
        } finally {
            lock.unlock();
        }
    }

    private void becameFree(LiveSequence sequence, long now) {
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

    /**
     * Removes the waiting requests of all sequences of an instance, which end. The caller completes the requests.
     *
     * @param reason why they end
     */
    List<ScheduledRequest> removeWaiting(Slots slots, SequenceEndReason reason) {
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

    /** Ends all sequences of an instance that is gone, with an error for their requests. */
    void endAll(Slots slots) {
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
                vacate(sequence);
            }
        }
    }

    /** Removes an instance; returns the waiting requests that no instance is left for. */
    List<ScheduledRequest> deregister(SequenceInstance instance) {
        instances.remove(instance);
        List<ScheduledRequest> left = new ArrayList<>();
        if (instances.isEmpty()) {
            drainBacklog(left);
        }
        return left;
    }

    private void drainBacklog(List<ScheduledRequest> removed) {
        for (LiveSequence one = backlog.first(); one != null; one = backlog.first()) {
            removeAll(one, removed);
            endAfterWaiting(one, SequenceEndReason.UNLOADED);
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

    /** Ends what has expired. */
    void expire() {
        times.expire(nanoTime.getAsLong(), sequence -> endAfterWaiting(sequence, SequenceEndReason.IDLE));
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

    /** Returns the number of sequences that wait for a slot. */
    int backlog() {
        return backlog.size();
    }

    /** Returns how many sequences there are. */
    SequenceUse use(long stateBytes, Map<SequenceEndReason, Long> ended) {
        int used = 0;
        int all = 0;
        for (SequenceInstance instance : instances) {
            used += instance.slotsUsed();
            all += stopped ? instance.slotsUsed() : instance.slots();
        }
        return new SequenceUse(unfinished, backlog.size(), used, all, stateBytes, ended);
    }

    boolean hasInstances() {
        return !instances.isEmpty();
    }

    /** Ends idle sequences now, and others when they are idle. */
    void stop() {
        stopped = true;
        for (LiveSequence one = times.idle().first();
                one != null;
                one = times.idle().first()) {
            endAfterWaiting(one, SequenceEndReason.UNLOADED);
        }
        instances.forEach(SequenceInstance::wakeThread);
    }

    /** Removes all waiting requests. Their sequences end. */
    List<ScheduledRequest> drain() {
        List<ScheduledRequest> removed = new ArrayList<>(waiting);
        drainBacklog(removed);
        for (LiveSequence one : List.copyOf(live.values())) {
            removeAll(one, removed);
            endAfterWaiting(one, SequenceEndReason.UNLOADED);
        }
        instances.forEach(instance -> instance.removeWaiting(removed));
        return removed;
    }
}
