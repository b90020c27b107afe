package dev.nereid.scheduler;

import dev.nereid.api.FailureReason;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ModelInstance;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.slf4j.event.Level;

/**
 * Takes batches from the queue of a model and has one instance execute them, or the instances that share a device in
 * turn. Run by one thread at a time: its own, one to which the seat of the instance was lent, or that of a test which goes
 * step by step.
 *
 * <p>Whatever a backend throws, the batch is answered and the worker goes on. The one exception is an error of the virtual
 * machine: it is thrown again after the answer and ends the thread, since nobody knows what state it left behind. The
 * worker then gives up its place at the queue. The other instances go on; without any, the last worker answers all that
 * waits, and the queue takes no more.
 */
final class InstanceWorker implements Runnable {
    private static final Logger LOG = LoggerFactory.getLogger(InstanceWorker.class);
    /** So many batches may the thread of one request execute. */
    private static final int MOST_LENT_BATCHES = 4;

    private final ModelScope model;
    private final DeviceSeats instances;
    private final RequestQueue queue;
    private final ShortExecutions executions;
    private final LongSupplier nanoTime;
    private final boolean limited;
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

    /** For what the turn was used, until the turn is ended. */
    private @Nullable ExecutionBatch executed;

    /** Takes a seat at the queue for an instance that has nothing to do before its first request. */
    InstanceWorker(
            ModelScope model,
            PluginInstance instance,
            RequestQueue queue,
            ShortExecutions executions,
            LongSupplier nanoTime) {
        this(
                model,
                new DeviceSeats(List.of(instance)),
                queue,
                executions,
                nanoTime,
                new Warmup(model, queue, List.of(), 1));
    }

    /**
     * Takes a seat at the queue.
     *
     * @param instances what executes the batches
     * @param warmup what is executed before the first of them
     * @param executions is told how long those take that run on threads which submit requests
     * @param nanoTime the clock
     */
    InstanceWorker(
            ModelScope model,
            DeviceSeats instances,
            RequestQueue queue,
            ShortExecutions executions,
            LongSupplier nanoTime,
            Warmup warmup) {
        this.model = model;
        this.instances = instances;
        this.warmup = warmup;
        this.queue = queue;
        this.executions = executions;
        this.nanoTime = nanoTime;
        this.limited = instances.turns().areLimited();
        boolean placed = instances.arePlaced();
        this.seat = queue.seat(this::runLent, instances::load); // last: a seat that is taken has to be left
        this.seat.placed = placed;
    }

    /**
     * Warms the instance up, works until the queue is stopped and empty, waits until no call is in flight, and closes the
     * instance. One that is retired, or could not be warmed up, waits for its own calls alone.
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
        (staying ? model.inFlight() : calls).awaitNone();
        close();
    }

    /** Puts the thread in its place, and warms the instances up; returns whether all that start together are warm. */
    boolean prepare(Warmup samples) {
        return samples.run(() -> {
            instances.place();
            for (int i = 0; i < instances.size(); i++) {
                PluginInstance instance = instances.next();
                samples.warm(batch -> warm(instance, batch));
            }
        });
    }

    private void warm(PluginInstance instance, ExecutionBatch batch) {
        Turns turns = instance.turns();
        if (!limited) {
            execute(instance, batch, false, false);
            return;
        }
        turns.ask();
        if (!turns.await()) {
            batch.refuse(nanoTime.getAsLong());
            return;
        }
        try {
            execute(instance, batch, false, false);
        } finally {
            batch.whenEnded(turns::end);
        }
    }

    private void serve() {
        if (limited) {
            while (awaitTurn()) {
                workInTurn();
            }
        } else {
            while (queue.take(seat)) {
                work(false);
            }
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
        queue.retire(seat);
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
        calls.awaitNone();
        if (closed.compareAndSet(false, true)) {
            instances.close();
        }
    }

    /** Does what can be done without waiting: one batch at most. */
    boolean step() {
        if (limited) {
            return stepInTurn();
        }
        boolean found = queue.poll(seat);
        if (found) {
            work(false);
        }
        return found;
    }

    private boolean stepInTurn() {
        Turns turns = instances.turns();
        if (!turns.isAsked() && !queue.hasWork()) {
            return false;
        }
        turns.ask();
        if (!turns.tryBegin()) {
            return false;
        }
        workInTurn();
        return true;
    }

    /**
     * Waits for work, and then for the turn to do it.
     *
     * @return {@code false} if there is nothing left to do, ever
     */
    private boolean awaitTurn() {
        Turns turns = instances.turns();
        if (!turns.isAsked() && !queue.awaitWork(seat)) {
            return false;
        }
        turns.ask();
        return turns.await();
    }

    /** Does what there is when the turn has come, and ends the turn, or leaves that to the end of the execution. */
    private void workInTurn() {
        Turns turns = instances.turns();
        boolean more = false;
        try {
            if (queue.poll(seat)) {
                work(false);
                more = executed != null && !retired && queue.hasWork();
            }
        } finally {
            endTurn(turns, more);
        }
    }

    private void endTurn(Turns turns, boolean more) {
        ExecutionBatch batch = executed;
        executed = null;
        if (more) {
            instances.turns().ask();
        }
        if (batch == null) {
            turns.giveBack();
        } else {
            batch.whenEnded(turns::end);
        }
    }

    /**
     * Executes the batch that lies at the seat on a thread that submits requests, and a little of what comes meanwhile: to
     * wake the instance's own thread for it costs more than most short executions. Never throws: what would end that
     * thread is left for it.
     */
    private void runLent() {
        int batches = 0;
        boolean more = true;
        while (more) {
            try {
                work(true);
            } catch (Throwable e) { // the caller has a request of its own, and nothing to do with this
                seat.fatal = e;
            }
            batches++;
            boolean mayRun = batches < MOST_LENT_BATCHES && seat.fatal == null && executions.areTrusted();
            more = queue.giveBack(seat, mayRun);
        }
    }

    /** Gives up the place at the queue, and answers what nobody is left to execute. */
    void giveUp() {
        gone = true;
        instances.leaveLimiter();
        for (ScheduledRequest request : seat.taken) { // if there was no memory to make a batch of them
            request.fail(SchedulerErrors.of(SchedulerErrors.noInstance(request.call())), FailureReason.OTHER);
            request.release();
        }
        for (ScheduledRequest request : queue.leave()) {
            request.reject(SchedulerErrors.noInstance(request.call()), FailureReason.OTHER);
        }
    }

    /**
     * Does what lies at the seat.
     *
     * @param lent whether the thread is not the instance's own
     */
    private void work(boolean lent) {
        if (!seat.overdue.isEmpty()) {
            seat.overdue.forEach(Due::answer);
            seat.overdue.clear();
        }
        for (int i = 0; i < seat.taken.size(); i++) {
            seat.taken.get(i).usedBy(calls);
        }
        boolean clientMemory = model.clientMemory()
                && seat.taken.size() == 1
                && seat.taken.getFirst().usesClientMemory();
        if (!clientMemory) {
            // Also for a backend that can stand it: the fault of one client must not fail the others of a batch.
            seat.taken.removeIf(request -> !request.copyClientMemory());
        }
        if (!seat.taken.isEmpty()) {
            ExecutionBatch batch = new ExecutionBatch(model, seat.taken);
            seat.taken.clear();
            PluginInstance instance = instances.next();
            executed = limited ? batch : null;
            current = batch;
            try {
                if (model.stragglers().areAbandoned()) {
                    batch.refuse(nanoTime.getAsLong());
                } else {
                    execute(instance, batch, clientMemory, lent);
                }
            } finally {
                current = null;
            }
        }
    }

    /** Gives up the requests that are with the backend. Any thread may call this. */
    void abandon() {
        ExecutionBatch batch = current;
        if (batch != null) {
            batch.abandon();
        }
    }

    private void execute(PluginInstance instance, ExecutionBatch batch, boolean clientMemory, boolean lent) {
        if (!lent) {
            Thread.interrupted(); // left by an execution that is over
        }
        long start = nanoTime.getAsLong();
        batch.started(start);
        Throwable thrown = instance.execute(batch, clientMemory);
        long end = nanoTime.getAsLong();
        boolean interrupted = false;
        if (lent) {
            executions.took(end - start);
        } else {
            interrupted = Thread.interrupted(); // meant for the execution that is over
            executions.tookOnItsOwnThread(end - start);
        }
        if (clientMemory && thrown instanceof InternalError) {
            batch.threw(new Answer.Failure(ClientMemory.lost(), FailureReason.OTHER), end);
            return;
        }
        if (thrown == null) {
            batch.returned(end);
        } else {
            batch.threw(Answer.Failure.of(failure(instance, thrown, interrupted), FailureReason.BACKEND), end);
        }
        if (thrown instanceof VirtualMachineError error) {
            throw error;
        }
    }

    private BackendException failure(PluginInstance instance, Throwable thrown, boolean interrupted) {
        boolean expected = thrown instanceof BackendException;
        if (!expected || thrown.getCause() != null) {
            LOG.atLevel(expected ? Level.WARN : Level.ERROR)
                    .addKeyValue("model", model.settings().name())
                    .addKeyValue("version", model.settings().version())
                    .addKeyValue("instance", instance.name())
                    .addKeyValue("interrupted", interrupted)
                    .setCause(thrown)
                    .log(expected ? "backend failed" : "backend failed unexpectedly");
        }
        return thrown instanceof BackendException failure
                ? failure
                : SchedulerErrors.unexpected(model.settings(), thrown);
    }
}
