package dev.nereid.scheduler;

import dev.nereid.api.FailureReason;
import dev.nereid.api.InferenceException;
import dev.nereid.spi.ModelInstance;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Takes batches from the queue of a model and has one instance execute them, or the instances that share a device in
 * turn. Run by one thread at a time: its own, one to which the seat of the instance was lent, or that of a test which
 * goes step by step.
 *
 * <p>Whatever is thrown, by a backend or here, the requests that were taken are answered and the worker goes on. A
 * worker gives up its place at the queue only if it is retired, or if its thread could not be started or its warm-up
 * failed. Without any worker the last one answers all that waits, and the queue takes no more.
 */
final class InstanceWorker implements Runnable {
    private static final Logger LOG = LoggerFactory.getLogger(InstanceWorker.class);

    /** How long the worker pauses after it failed to take a batch: a fault that repeats must not take a processor. */
    private static final long PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(10);

    /** So many batches may the thread of one request execute. */
    private static final int MOST_LENT_BATCHES = 4;

    private final ExecutionScope scope;
    private final DeviceSeats instances;
    private final BatchSource source;
    private final ShortExecutions executions;
    private final BatchRunner runner;
    private final boolean limited;
    private final TurnTaker turnTaker;
    private final Warmup warmup;
    private final Seat seat;

    /** The calls that the instances are not done with. */
    private final InFlight calls = new InFlight();

    private final AtomicBoolean closed = new AtomicBoolean();
    private volatile boolean retired;

    /** Whether the place at the queue was given up. */
    private volatile boolean gone;

    /** What the backend is given at this moment; written by the thread that runs the instance. */
    private volatile @Nullable ExecutionBatch current;

    /** What the backend is given of the warm-up at this moment; written by the instance's own thread. */
    private volatile @Nullable ExecutionBatch warming;

    /** The last execution that was reported as overdue; written by the watchdog. */
    private volatile @Nullable ExecutionBatch overdue;

    /** Whether the thread that executes will not return from the backend. */
    private volatile boolean lost;

    /**
     * Takes a seat at the queue.
     *
     * @param instances what executes the batches
     * @param source where they come from
     * @param executions is told how long those take that run on threads which submit requests
     * @param warmup what is executed before the first of them
     */
    InstanceWorker(
            ExecutionScope scope,
            DeviceSeats instances,
            BatchSource source,
            ShortExecutions executions,
            Warmup warmup) {
        this.scope = scope;
        this.instances = instances;
        this.warmup = warmup;
        this.source = source;
        this.executions = executions;
        this.runner = new BatchRunner(scope.model(), executions);
        this.limited = instances.turns().areLimited();
        this.turnTaker = new TurnTaker(instances, source);
        boolean placed = instances.arePlaced();
        this.seat = source.seat(this::runLent, instances::load); // last: a seat that is taken has to be left
        if (placed) {
            seat.pin();
        }
    }

    /**
     * Warms the instance up, works until the queue is stopped and empty, waits until no call is in flight, and closes
     * the instance. One that is retired, or could not be warmed up, waits for its own calls alone.
     */
    @Override
    public void run() {
        boolean staying = false;
        try {
            if (prepare(warmup)) {
                serve();
                staying = !retired;
            }
        } finally {
            if (!staying) {
                giveUp();
            }
        }
        (staying ? scope.model().inFlight() : calls).awaitNone();
        close();
    }

    /** Puts the thread in its place, and warms the instances up; returns whether all that start together are warm. */
    boolean prepare(Warmup samples) {
        return samples.run(() -> {
            instances.place();
            for (int i = 0; i < instances.size(); i++) {
                PluginInstance instance = instances.next();
                samples.warm(instance.name(), batch -> warm(instance, batch));
            }
        });
    }

    private void warm(PluginInstance instance, ExecutionBatch batch) {
        batch.executedBy(Thread.currentThread());
        warming = batch;
        try {
            warmInTurn(instance, batch);
        } finally {
            warming = null;
        }
    }

    private void warmInTurn(PluginInstance instance, ExecutionBatch batch) {
        if (!limited) {
            runner.warm(instance, batch);
            return;
        }
        Turns turns = instance.turns();
        turns.ask();
        if (!turns.await()) {
            batch.refuse(scope.model().nanoTime().getAsLong());
            return;
        }
        try {
            runner.warm(instance, batch);
        } finally {
            batch.whenEnded(turns::end);
        }
    }

    private void serve() {
        boolean more = true;
        while (more) {
            try {
                more = serveOnce();
            } catch (Throwable e) { // such as no memory to make a batch
                recover(e);
                LockSupport.parkNanos(this, PAUSE_NANOS);
            }
        }
    }

    /** Waits for a batch and executes it; returns whether there may be more. */
    private boolean serveOnce() {
        if (limited) {
            boolean begun = turnTaker.await(seat);
            if (begun) {
                workInTurn();
            }
            return begun;
        }
        boolean taken = source.take(seat);
        if (taken) {
            work(false);
        }
        return taken;
    }

    /** Answers the requests that were taken and cannot be executed, after something failed outside of the backend. */
    private void recover(Throwable cause) {
        try {
            scope.model().fatalErrors().check(cause);
            LOG.atError().addKeyValue("instance", name()).setCause(cause).log("instance failed to execute a batch");
            InferenceException error = SchedulerErrors.internal(cause);
            while (!seat.taken().isEmpty()) {
                ScheduledRequest request = seat.taken().removeLast();
                request.answer(new Answer.Failure(error, FailureReason.OTHER));
                request.release();
            }
        } catch (Throwable again) { // no memory to say so: whatever is left at the seat is executed next
            scope.model().fatalErrors().check(again);
        }
    }

    /** Returns the name of the instance, or of the device that several share. */
    String name() {
        return instances.name();
    }

    /** Says whether the worker has this very instance. */
    boolean has(ModelInstance instance) {
        return instances.has(instance);
    }

    /** Says whether the instance is ready. Any thread may ask. */
    boolean isReady() {
        return instances.areReady();
    }

    /** Has the instance take no more requests; it is closed when those it has are done. Any thread may call this. */
    void retire() {
        retired = true;
        source.retire(seat);
        instances.withdrawTurns();
    }

    /** Says whether the instance is to take no more requests. */
    boolean isRetired() {
        return retired;
    }

    /** Says whether the instance has given up its place at the queue: it is retired, or its thread came to its end. */
    boolean isGone() {
        return gone;
    }

    /**
     * Closes the instance once no call uses it, if that was not done; by another thread only after the worker's own is
     * over. A worker that died may have left executions that go on, and responses that are read.
     */
    void close() {
        if (lost) {
            return;
        }
        calls.awaitNone();
        if (closed.compareAndSet(false, true)) {
            instances.close();
        }
    }

    /** Does what can be done without waiting: one batch at most. */
    boolean step() {
        if (limited) {
            boolean begun = turnTaker.tryBegin();
            if (begun) {
                workInTurn();
            }
            return begun;
        }
        boolean found = source.poll(seat);
        if (found) {
            work(false);
        }
        return found;
    }

    /** Does what there is when the turn has come. */
    private void workInTurn() {
        Turns turns = instances.turns();
        boolean more = false;
        try {
            if (source.poll(seat)) {
                work(false);
                more = !retired && turnTaker.isWorthAnother();
            }
        } finally {
            turnTaker.end(turns, more);
        }
    }

    /**
     * Executes the batch that lies at the seat on a thread that submits requests, and a little of what comes meanwhile:
     * to wake the instance's own thread for it costs more than most short executions. Never throws.
     */
    private void runLent() {
        int batches = 0;
        boolean more = true;
        while (more) {
            boolean failed = false;
            try {
                work(true);
            } catch (Throwable e) { // the caller has a request of its own, and nothing to do with this
                failed = true;
                recover(e);
            }
            batches++;
            try {
                more = source.giveBack(seat, batches < MOST_LENT_BATCHES && !failed && executions.areTrusted());
            } catch (Throwable e) { // the instance's own thread was called
                more = false;
                scope.model().fatalErrors().check(e);
            }
        }
    }

    /** Gives up the place at the queue, and answers what nobody is left to execute. */
    void giveUp() {
        gone = true;
        instances.leaveLimiter();
        seat.rejectExpired();
        for (ScheduledRequest request : seat.taken()) { // if taking them failed after others had begun
            request.fail(SchedulerErrors.of(SchedulerErrors.noInstance(request.call())), FailureReason.OTHER);
            request.release();
        }
        seat.taken().clear();
        for (ScheduledRequest request : source.leave()) {
            request.reject(SchedulerErrors.noInstance(request.call()), FailureReason.OTHER);
        }
    }

    /**
     * Does what lies at the seat.
     *
     * @param lent whether the thread is not the instance's own
     */
    private void work(boolean lent) {
        seat.rejectExpired();
        for (int i = 0; i < seat.taken().size(); i++) {
            seat.taken().get(i).usedBy(calls);
        }
        boolean clientMemory = scope.clientMemory()
                && seat.taken().size() == 1
                && seat.taken().getFirst().usesClientMemory();
        if (!clientMemory) {
            // Also for a backend that can stand it: the fault of one client must not fail the others of a batch.
            copyClientMemory();
        }
        if (!seat.taken().isEmpty()) {
            ExecutionBatch batch = new ExecutionBatch(scope, seat.taken());
            seat.taken().clear();
            PluginInstance instance = instances.next();
            if (limited) {
                turnTaker.use(batch);
            }
            batch.executedBy(Thread.currentThread());
            current = batch;
            try {
                if (scope.model().stragglers().areAbandoned()) {
                    batch.refuse(scope.model().nanoTime().getAsLong());
                } else {
                    runner.run(instance, batch, clientMemory, lent);
                }
            } catch (Throwable e) { // the batch is not answered yet
                batch.threw(
                        new Answer.Failure(SchedulerErrors.internal(e), FailureReason.OTHER),
                        scope.model().nanoTime().getAsLong());
                throw e;
            } finally {
                current = null;
            }
        }
    }

    /** Removes those requests whose inputs went away; they are answered. */
    private void copyClientMemory() {
        for (int i = seat.taken().size() - 1; i >= 0; i--) {
            if (!seat.taken().get(i).copyClientMemory()) {
                seat.taken().remove(i);
            }
        }
    }

    /** Returns what the backend is given at this moment; {@code null} for nothing. Any thread may ask. */
    @Nullable
    ExecutionBatch current() {
        return current;
    }

    /** Returns what the backend is given of the warm-up at this moment; {@code null} for nothing. */
    @Nullable
    ExecutionBatch warming() {
        return warming;
    }

    /** Takes note that an execution is overdue; returns whether it goes on. To be called by the watchdog. */
    @SuppressWarnings("ReferenceEquality") // Each execution has a batch of its own.
    boolean overdue(ExecutionBatch batch) {
        boolean goesOn = batch == current || batch == warming;
        if (goesOn) {
            overdue = batch;
        }
        return goesOn;
    }

    /** Says whether this very execution was reported as overdue. */
    @SuppressWarnings("ReferenceEquality")
    boolean isOverdue(ExecutionBatch batch) {
        return batch == overdue;
    }

    /** Says whether the execution of this moment was reported as overdue. */
    boolean isOverdue() {
        ExecutionBatch executed = current;
        return executed != null && isOverdue(executed);
    }

    /** Says whether a thread is in the backend with requests of this worker. */
    boolean executesOn(Thread thread) {
        ExecutionBatch batch = current;
        return batch != null && thread.equals(batch.thread());
    }

    /**
     * Gives up an execution whose thread will not return from the backend, since it ends the process: its requests are
     * answered and waited for by nobody, and the instance is never closed. Any thread may call this.
     */
    void lose() {
        lost = true;
        retire();
        abandon();
        giveUp();
        for (int left = calls.count(); left > 0; left--) {
            scope.model().inFlight().leave();
        }
    }

    /** Says whether {@link #lose} was called. */
    boolean isLost() {
        return lost;
    }

    /** Gives up the requests that are with the backend. Any thread may call this. */
    void abandon() {
        ExecutionBatch batch = current;
        if (batch != null) {
            batch.abandon();
        }
    }
}
