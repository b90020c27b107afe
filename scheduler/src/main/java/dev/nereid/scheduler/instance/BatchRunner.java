package dev.nereid.scheduler.instance;

import dev.nereid.api.InferenceException;
import dev.nereid.api.statistics.FailureReason;
import dev.nereid.scheduler.batch.ExecutionBatch;
import dev.nereid.scheduler.memory.ClientMemory;
import dev.nereid.scheduler.request.Continuations;
import dev.nereid.scheduler.request.ModelScope;
import dev.nereid.scheduler.request.ResponseEvent;
import dev.nereid.scheduler.request.SchedulerErrors;
import dev.nereid.spi.BackendException;
import java.util.function.BooleanSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.slf4j.event.Level;

/**
 * Executes a batch on an instance and completes its requests. Immutable; each instance is run by one thread at a time.
 *
 * <p>An error of a backend fails its execution alone. Fatal errors are also passed to the model's
 * {@code FatalErrorHandler}.
 */
final class BatchRunner {
    private static final Logger LOG = LoggerFactory.getLogger(BatchRunner.class);

    private final ModelScope model;
    private final DurationRecord onDirectExecution;
    private final DurationRecord onInstanceThread;
    private final boolean declaredShort;
    private final MemoryFailures memory = new MemoryFailures();

    /**
     * Creates a runner.
     *
     * @param executions records how long executions take
     */
    BatchRunner(ModelScope model, DirectExecutionPolicy executions) {
        this.model = model;
        this.onDirectExecution = executions::recordDirect;
        this.onInstanceThread = (nanos, deferred) -> executions.recordOnInstanceThread(nanos);
        this.declaredShort = executions.areDeclaredShort();
    }

    /** Records how long an execution has held its thread, and whether it is deferred. */
    @FunctionalInterface
    private interface DurationRecord {
        void add(long nanos, boolean deferred);
    }

    /** Returns whether executions may be direct at some time, so that no execution must block. */
    boolean areDeclaredShort() {
        return declaredShort;
    }

    /**
     * Executes a batch.
     *
     * @param clientMemory whether the batch lies in memory of a client
     * @param direct whether the thread is not the instance's own
     * @param free returns whether the thread may execute steps that follow from the batch, once it has released the
     *     instance
     */
    void run(Instance instance, ExecutionBatch batch, boolean clientMemory, boolean direct, BooleanSupplier free) {
        run(instance, batch, clientMemory, direct, direct ? onDirectExecution : onInstanceThread, free);
    }

    /** Executes a batch of warm-up samples. Its duration is not recorded; it runs on the instance's own thread. */
    void warm(Instance instance, ExecutionBatch batch) {
        run(instance, batch, false, false, (nanos, deferred) -> {}, () -> false);
    }

    /** Returns the executions that failed for want of memory. */
    MemoryFailures memory() {
        return memory;
    }

    private void run(
            Instance instance,
            ExecutionBatch batch,
            boolean clientMemory,
            boolean direct,
            DurationRecord durations,
            BooleanSupplier free) {
        if (!direct) {
            Thread.interrupted(); // left by an earlier execution
        }
        long start = model.nanoTime().getAsLong();
        batch.started(start);
        Throwable thrown = instance.execute(batch, clientMemory);
        long end = model.nanoTime().getAsLong();
        boolean interrupted = false;
        if (!direct) {
            interrupted = Thread.interrupted(); // meant for this execution
        }
        boolean waits = batch.hasFences() && !batch.isDeferred(); // this thread waits for a device next
        if (!waits) {
            durations.add(end - start, batch.isDeferred());
        }
        memory.ended(thrown, end);
        model.fatalErrors().check(thrown);
        Continuations continuations = Continuations.current();
        BooleanSupplier before = continuations.enter(free);
        try {
            if (clientMemory && thrown instanceof InternalError) {
                batch.threw(new ResponseEvent.Failure(ClientMemory.lostError(), FailureReason.OTHER), end);
            } else if (thrown == null) {
                batch.returned(end);
            } else {
                BackendException failure = failure(instance, thrown, interrupted);
                batch.threw(ResponseEvent.Failure.of(failure, FailureReason.BACKEND), end);
            }
        } finally {
            continuations.exit(before);
        }
        if (waits) {
            durations.add(end - start + batch.awaitedNanos(), false);
        }
    }

    private BackendException failure(Instance instance, Throwable thrown, boolean interrupted) {
        boolean expected = thrown instanceof BackendException;
        if (!expected || (thrown.getCause() != null && !(thrown.getCause() instanceof InferenceException))) {
            LOG.atLevel(expected ? Level.WARN : Level.ERROR)
                    .addKeyValue("model", model.settings().name())
                    .addKeyValue("version", model.settings().version())
                    .addKeyValue("instance", instance.name())
                    .addKeyValue("interrupted", interrupted)
                    .setCause(thrown)
                    .log(
                            (expected ? "backend failed" : "backend failed unexpectedly")
                                    + " (model '{}', version {}, instance '{}')",
                            model.settings().name(),
                            model.settings().version(),
                            instance.name());
        }
        return thrown instanceof BackendException failure
                ? failure
                : SchedulerErrors.unexpected(model.settings(), thrown);
    }
}
