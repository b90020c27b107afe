package dev.nereid.scheduler;

import dev.nereid.api.FailureReason;
import dev.nereid.scheduler.rate.Ticket;
import dev.nereid.spi.BackendException;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.slf4j.event.Level;

/**
 * Takes batches from the queue of a model and has one instance execute them. Run by one thread at a time: its own, one to
 * which the seat of the instance was lent, or that of a test which goes step by step.
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
    private final PluginInstance instance;
    private final RequestQueue queue;
    private final ShortExecutions executions;
    private final LongSupplier nanoTime;
    private final Turns turns;
    private final Seat seat;

    /** What the backend is given at this moment; written by the thread that runs the instance. */
    private volatile @Nullable ExecutionBatch current;

    /** For what the turn was used, until the turn is ended. */
    private @Nullable ExecutionBatch executed;

    private boolean closed;

    /**
     * Takes a seat at the queue.
     *
     * @param ticket by which the instance asks for its turns; closed by the worker
     * @param executions is told how long those take that run on threads which submit requests
     * @param nanoTime the clock
     */
    InstanceWorker(
            ModelScope model,
            PluginInstance instance,
            Ticket ticket,
            RequestQueue queue,
            ShortExecutions executions,
            LongSupplier nanoTime) {
        this.model = model;
        this.instance = instance;
        this.queue = queue;
        this.executions = executions;
        this.nanoTime = nanoTime;
        this.turns = new Turns(ticket);
        this.seat = queue.seat(this::runLent, ticket::load);
    }

    /** Works until the queue is stopped and empty, waits until no call is in flight, and closes the instance. */
    @Override
    public void run() {
        boolean orderly = false;
        try {
            if (turns.areLimited()) {
                while (awaitTurn()) {
                    workInTurn();
                }
            } else {
                while (queue.take(seat)) {
                    work(false);
                }
            }
            orderly = true;
        } finally {
            if (!orderly) {
                giveUp();
            }
        }
        model.inFlight().awaitNone();
        close();
    }

    /** Returns the name of the instance. */
    String name() {
        return instance.name();
    }

    /** Says whether the instance is ready. Any thread may ask. */
    boolean isReady() {
        return instance.isReady();
    }

    /** Closes the instance, if that was not done; by another thread only after the worker's own is over. */
    void close() {
        if (!closed) {
            closed = true;
            turns.close();
            instance.close();
        }
    }

    /** Does what can be done without waiting: one batch at most. */
    boolean step() {
        if (turns.areLimited()) {
            return stepInTurn();
        }
        boolean found = queue.poll(seat);
        if (found) {
            work(false);
        }
        return found;
    }

    private boolean stepInTurn() {
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
        if (!turns.isAsked() && !queue.awaitWork(seat)) {
            return false;
        }
        turns.ask();
        turns.await();
        return true;
    }

    /** Does what there is when the turn has come, and ends the turn, or leaves that to the end of the execution. */
    private void workInTurn() {
        boolean more = false;
        try {
            if (queue.poll(seat)) {
                work(false);
                more = executed != null && queue.hasWork();
            }
        } finally {
            endTurn(more);
        }
    }

    private void endTurn(boolean more) {
        ExecutionBatch batch = executed;
        executed = null;
        if (more) {
            turns.ask();
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
    private void giveUp() {
        turns.close();
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
            executed = turns.areLimited() ? batch : null;
            current = batch;
            try {
                if (model.stragglers().areAbandoned()) {
                    batch.refuse(nanoTime.getAsLong());
                } else {
                    execute(batch, clientMemory, lent);
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

    private void execute(ExecutionBatch batch, boolean clientMemory, boolean lent) {
        long start = nanoTime.getAsLong();
        batch.started(start);
        Throwable thrown = instance.execute(batch, clientMemory);
        long end = nanoTime.getAsLong();
        boolean interrupted = false;
        if (lent) {
            executions.took(end - start);
        } else {
            interrupted = Thread.interrupted(); // meant for the execution that is over
        }
        if (clientMemory && thrown instanceof InternalError) {
            batch.threw(new Answer.Failure(ClientMemory.lost(), FailureReason.OTHER), end);
            return;
        }
        if (thrown == null) {
            batch.returned(end);
        } else {
            batch.threw(Answer.Failure.of(failure(thrown, interrupted), FailureReason.BACKEND), end);
        }
        if (thrown instanceof VirtualMachineError error) {
            throw error;
        }
    }

    private BackendException failure(Throwable thrown, boolean interrupted) {
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
