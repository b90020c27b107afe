package dev.nereid.scheduler;

import dev.nereid.spi.BackendException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.slf4j.event.Level;

/**
 * Takes batches from the queue of a model and has one instance execute them. Confined to one thread: its own, or that of
 * a test which goes step by step.
 *
 * <p>Whatever a backend throws, the batch is answered and the worker goes on. The one exception is an error of the virtual
 * machine: it is thrown again after the answer and ends the thread, since nobody knows what state it left behind. The
 * worker then gives up its place at the queue. The other instances go on; without any, the last worker answers all that
 * waits, and the queue takes no more.
 */
final class InstanceWorker implements Runnable {
    private static final Logger LOG = LoggerFactory.getLogger(InstanceWorker.class);

    private final ModelScope model;
    private final PluginInstance instance;
    private final RequestQueue queue;
    private final Seat seat;
    private boolean closed;

    InstanceWorker(ModelScope model, PluginInstance instance, RequestQueue queue) {
        this.model = model;
        this.instance = instance;
        this.queue = queue;
        this.seat = queue.seat();
    }

    /** Works until the queue is stopped and empty, waits until no call is in flight, and closes the instance. */
    @Override
    public void run() {
        boolean orderly = false;
        try {
            while (queue.take(seat)) {
                work();
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
            instance.close();
        }
    }

    /** Does what can be done without waiting: one batch at most. */
    boolean step() {
        boolean found = queue.poll(seat);
        if (found) {
            work();
        }
        return found;
    }

    /** Gives up the place at the queue, and answers what nobody is left to execute. */
    private void giveUp() {
        for (ScheduledRequest request : seat.taken) { // if there was no memory to make a batch of them
            request.fail(SchedulerErrors.of(SchedulerErrors.noInstance(request.call())));
            request.release();
        }
        for (ScheduledRequest request : queue.leave()) {
            request.reject(SchedulerErrors.noInstance(request.call()));
        }
    }

    private void work() {
        for (int i = 0; i < seat.expired.size(); i++) {
            seat.expired.get(i).reject(SchedulerErrors.cancelled());
        }
        seat.expired.clear();
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
            execute(batch, clientMemory);
        }
    }

    private void execute(ExecutionBatch batch, boolean clientMemory) {
        Throwable thrown = instance.execute(batch, clientMemory);
        boolean interrupted = Thread.interrupted(); // meant for the execution that is over
        if (clientMemory && thrown instanceof InternalError) {
            batch.threw(SchedulerErrors.of(ClientMemory.lost()));
            return;
        }
        if (thrown == null) {
            batch.returned();
        } else {
            batch.threw(failure(thrown, interrupted));
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
