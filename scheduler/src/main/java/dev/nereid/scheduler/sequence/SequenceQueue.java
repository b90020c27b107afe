package dev.nereid.scheduler.sequence;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.api.InferenceException;
import dev.nereid.scheduler.batch.BatchPlanner;
import dev.nereid.scheduler.queue.InstanceHandle;
import dev.nereid.scheduler.queue.ModelQueue;
import dev.nereid.scheduler.queue.OfferResult;
import dev.nereid.scheduler.queue.QueueLock;
import dev.nereid.scheduler.queue.SequenceUse;
import dev.nereid.scheduler.queue.WorkSource;
import dev.nereid.scheduler.request.IndependentCalls;
import dev.nereid.scheduler.request.ModelScope;
import dev.nereid.scheduler.request.Rescheduler;
import dev.nereid.scheduler.request.ResponseChannel;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.scheduler.statistics.SequenceEnds;
import dev.nereid.scheduler.time.Timer;
import dev.nereid.spi.Sequence;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Queues the requests of sequences of one model, in one queue for each instance. A table has the live sequences.
 * Guarded by one lock; no backend, observer or other foreign code is called under it.
 *
 * <p><b>Slots.</b> A sequence gets the lowest free slot over all instances with its first request, and keeps it until
 * its last request is taken. Without a free slot it waits in the backlog, of which the oldest sequence gets the next
 * slot. One request of a sequence is in execution at a time, in the order of arrival.
 *
 * <p><b>Ends.</b> A sequence ends with the request that says so, if it is idle for too long, if the timeout of one of
 * its requests expires in the backlog, or if one of its requests is cancelled while it waits: that request and all
 * later ones are cancelled then, and earlier requests are executed. A stop ends sequences as soon as they are idle.
 */
public final class SequenceQueue implements ModelQueue {
    private final ModelScope model;
    private final SequencePlan plan;
    private final SequenceInputs inputs;
    private final Consumer<SequenceEntry> remover = this::remove;
    private final QueueLock lock = new QueueLock();

    /**
     * {@code true} if an execution is a step that counts even if its client leaves meanwhile. An iterative request is a
     * whole sequence, and a decoupled one may send responses for long: their backends are notified.
     */
    private final boolean isStep;

    @GuardedBy("lock")
    private final SequenceTable table;

    @GuardedBy("lock")
    private final SequenceExecutions executions;

    /** The last id that was given to an iterative request without one. */
    @GuardedBy("lock")
    private long lastId;

    /** The requests for which an instance of the oldest strategy waits at first. */
    @GuardedBy("lock")
    private int heldRequests;

    /** Creates a queue without instances. Holds a timeout of the timer until the close. */
    public SequenceQueue(ModelScope model, SequencePlan plan, Timer timer) {
        this.model = model;
        this.plan = plan;
        this.inputs = new SequenceInputs(model, plan);
        this.isStep = !plan.batching().iterative() && !model.settings().decoupled();
        this.table = new SequenceTable(
                lock,
                model.nanoTime(),
                timer,
                plan.maxIdleNanos(),
                model.meter().sequenceEnds(),
                inputs::freeNullRequests);
        this.executions = new SequenceExecutions(
                table,
                lock,
                inputs,
                model.meter().sequenceEnds(),
                plan.batching().iterative());
    }

    @Override
    public WorkSource source() {
        lock.lock();
        try {
            inputs.addInstance();
            Slots slots = new Slots(plan.slots());
            Rescheduling rescheduler = plan.batching().iterative() ? new Rescheduling(table, lock) : null;
            SequenceInstance instance = new SequenceInstance(
                    table, lock, model.nanoTime(), slots, strategy(slots), plan.isDirect(), rescheduler);
            return instance.source();
        } finally {
            lock.unlock();
        }
    }

    @GuardedBy("lock")
    private SlotStrategy strategy(Slots slots) {
        if (plan.isDirect()) {
            return new DirectSlots(executions, slots, inputs.equalInputs(), plan);
        }
        int maxBatchSize = model.settings().maxBatchSize();
        BatchPlanner planner = maxBatchSize > 0
                ? new BatchPlanner(maxBatchSize, plan.preferredSizes(), plan.maxQueueDelayNanos())
                : BatchPlanner.oneByOne();
        return new OldestSlots(executions, inputs.equalInputs(), planner, heldRequests);
    }

    @Override
    public OfferResult offer(ScheduledRequest request, boolean mayRun) {
        if (request.checked().batchSize() > 1) {
            return new OfferResult.Refused(SequenceErrors.batched(request.checked()));
        }
        Sequence position = position(request);
        if (position == null || !isId(position.id())) {
            return new OfferResult.Refused(SequenceErrors.noId(request.checked()));
        }
        LiveSequence fresh;
        try {
            inputs.reserveNullRequests(request.checked());
            fresh = mayStart(request, position) ? inputs.newSequence(position.id()) : null;
        } catch (InferenceException e) { // no memory for the id or for null requests
            return new OfferResult.Refused(e);
        }
        SequenceEntry entry =
                new SequenceEntry(request, position, inputs.equalInputs().content(request.checked()), remover);
        if (isStep) {
            request.completeSteps();
        }
        request.setPosition(entry);
        return offer(entry, fresh, mayRun);
    }

    /** Returns the position in a sequence; an iterative request is a separate sequence. */
    private @Nullable Sequence position(ScheduledRequest request) {
        Sequence given = request.checked().options().sequence().orElse(null);
        if (!plan.batching().iterative()) {
            return given;
        }
        Sequence own = given != null && isId(given.id())
                ? new Sequence(given.id(), true, false)
                : new Sequence(newId(), true, false);
        request.setSequence(own);
        return own;
    }

    /** Returns whether the client starts a sequence, so that no sequence of that id needs to live. */
    private static boolean mayStart(ScheduledRequest request, Sequence position) {
        Sequence given = request.checked().options().sequence().orElse(null);
        return (given != null && given.id().equals(position.id()) ? given : position).start();
    }

    /** Returns an id that no sequence has. */
    private Sequence.Id newId() {
        Sequence.Id id;
        lock.lock();
        try {
            do {
                lastId++;
                id = new Sequence.Id.Numeric(lastId);
            } while (table.has(id));
        } finally {
            lock.unlock();
        }
        return id;
    }

    private OfferResult offer(SequenceEntry entry, @Nullable LiveSequence fresh, boolean mayRun) {
        boolean used = false;
        lock.lock();
        try {
            OfferResult result = table.add(entry, fresh, plan.batching().iterative());
            LiveSequence sequence = entry.sequence;
            InstanceHandle acquired = sequence == null ? null : table.serve(sequence, mayRun);
            return acquired == null ? result : acquired;
        } finally {
            used = fresh != null && entry.home == fresh; // also if that has failed after it was added
            lock.unlock();
            if (fresh != null && !used) {
                fresh.release(Runnable::run);
            }
        }
    }

    private static boolean isId(Sequence.Id id) {
        return switch (id) {
            case Sequence.Id.Numeric number -> number.value() != 0;
            case Sequence.Id.Text text -> !text.value().isEmpty();
        };
    }

    @Override
    public @Nullable InstanceHandle offerAll(
            List<ScheduledRequest> offered, boolean mayRun, List<OfferResult> outcomes) {
        for (ScheduledRequest request : offered) {
            outcomes.add(offer(request, false));
        }
        return null;
    }

    /** Removes a request that was completed while it waits: it was cancelled. */
    private void remove(SequenceEntry entry) {
        lock.lock();
        try {
            LiveSequence sequence = entry.sequence;
            if (sequence != null) {
                if (plan.batching().iterative()) {
                    table.cancelIteration(sequence, entry);
                } else {
                    table.cancel(sequence, entry);
                }
            }
        } finally {
            lock.unlock();
        }
    }

    /**
     * Delays all batches until requests wait, once. A stop ends the hold, and so does a reload. Called before the first
     * instance is added.
     *
     * @param requests the requests of sequences with a slot: of all instances with the direct strategy; of each
     *     instance, one for each sequence, with the oldest; 0 for none
     * @param backlogged the requests in the backlog, for the direct strategy; 0 for none
     */
    public void hold(int requests, int backlogged) {
        lock.lock();
        try {
            if (plan.isDirect()) {
                table.placement().hold(requests, backlogged);
            } else {
                heldRequests = requests;
            }
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void endHold() {
        lock.lock();
        try {
            heldRequests = 0;
            table.placement().endHold();
        } finally {
            lock.unlock();
        }
    }

    @Override
    public boolean hasSequence(Sequence.Id id) {
        lock.lock();
        try {
            return table.has(id);
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void replaceSequence(Sequence.Id id) {
        lock.lock();
        try {
            table.replace(id);
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void cancelSequence(Sequence.Id id) {
        if (plan.batching().iterative()) {
            return;
        }
        lock.lock();
        try {
            table.cancel(id);
        } finally {
            lock.unlock();
        }
    }

    @Override
    public boolean hasSequences() {
        lock.lock();
        try {
            return table.sequences() > 0;
        } finally {
            lock.unlock();
        }
    }

    @Override
    public boolean whenSequencesEnd(Runnable action) {
        lock.lock();
        try {
            table.placement().endHold(); // no sequence starts here any more
            return table.whenEmpty(action);
        } finally {
            lock.unlock();
        }
    }

    @Override
    public int waiting() {
        lock.lock();
        try {
            return table.waiting();
        } finally {
            lock.unlock();
        }
    }

    /** Returns the number of sequences to which requests may be added; sequences in the backlog count. */
    public int sequences() {
        lock.lock();
        try {
            return table.sequences();
        } finally {
            lock.unlock();
        }
    }

    public long stateBytes() {
        return inputs.stateBytes();
    }

    /**
     * Returns the number of states that were copied: because they did not lie in the order of their batch, or so that a
     * few states do not keep the buffer of many. Copies by earlier queues of the model version are included.
     */
    public long copiedStates() {
        return model.meter().stateCopies().get();
    }

    @Override
    public Optional<SequenceUse> sequenceUse() {
        SequenceEnds ends = model.meter().sequenceEnds();
        SequenceUse.States states = new SequenceUse.States(
                inputs.stateBytes(), model.meter().stateCopies().get());
        lock.lock();
        try {
            return Optional.of(table.use(states, ends.counts()));
        } finally {
            lock.unlock();
        }
    }

    /** Returns the number of sequences that wait for a slot. */
    public int backlog() {
        lock.lock();
        try {
            return table.placement().backlog().size();
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void leave() {
        lock.lock();
        try {
            table.leave();
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void stop() {
        lock.lock();
        try {
            table.stop();
        } finally {
            lock.unlock();
        }
    }

    @Override
    public List<ScheduledRequest> drain() {
        lock.lock();
        try {
            return table.drain();
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void close() {
        lock.lock();
        try {
            SequenceTable closing = table;
            lock.later(closing::close); // the timer is used without the lock
        } finally {
            lock.unlock();
        }
        inputs.close();
    }

    @Override
    public boolean isOpen() {
        lock.lock();
        try {
            return !table.isStopped() && table.placement().hasInstances();
        } finally {
            lock.unlock();
        }
    }

    @Override
    public boolean isStopped() {
        lock.lock();
        try {
            return table.isStopped();
        } finally {
            lock.unlock();
        }
    }

    /**
     * Queues rescheduled requests of iterative sequences. Safe for use by any thread.
     *
     * <p>A request keeps its slot, and goes before all others of its sequence. While its client does not read, it stays
     * there and is not executed; the other sequences go on.
     */
    static final class Rescheduling implements Rescheduler {
        private final SequenceTable table;
        private final QueueLock lock;

        Rescheduling(SequenceTable table, QueueLock lock) {
            this.table = table;
            this.lock = lock;
        }

        @Override
        public Rescheduler.Position newPosition(ScheduledRequest request) {
            return entry(request).rescheduled();
        }

        @Override
        public void reschedule(int ended, List<ScheduledRequest> rescheduled) {
            IndependentCalls.forEach(rescheduled, this::reschedule);
        }

        private void reschedule(ScheduledRequest request) {
            try {
                SequenceEntry entry = entry(request);
                ResponseChannel channel = request.delivery().channel();
                boolean paused = channel != null && !channel.isReady();
                lock.lock();
                try {
                    table.addAgain(entry, paused);
                } finally {
                    lock.unlock();
                }
                request.checkQueued();
                if (channel != null && paused) {
                    channel.alsoWhenReady(() -> resume(entry));
                }
            } catch (RuntimeException e) { // of the flow of its client: the others are not affected
                request.failUnqueued(e);
            }
        }

        private void resume(SequenceEntry entry) {
            lock.lock();
            try {
                table.resume(entry);
            } finally {
                lock.unlock();
            }
        }

        private static SequenceEntry entry(ScheduledRequest request) {
            if (request.position() instanceof SequenceEntry entry) {
                return entry;
            }
            throw new IllegalStateException("position: " + request.position() + " (expected: of a sequence)");
        }
    }
}
