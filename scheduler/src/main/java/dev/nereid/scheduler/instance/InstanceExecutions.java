package dev.nereid.scheduler.instance;

import dev.nereid.api.InferenceException;
import dev.nereid.api.call.Hold;
import dev.nereid.api.statistics.FailureReason;
import dev.nereid.scheduler.batch.ExecutionBatch;
import dev.nereid.scheduler.batch.ExecutionScope;
import dev.nereid.scheduler.client.RunningExecution;
import dev.nereid.scheduler.client.WaitingCalls;
import dev.nereid.scheduler.memory.ClientMemory;
import dev.nereid.scheduler.memory.InputStaging;
import dev.nereid.scheduler.queue.InstanceHandle;
import dev.nereid.scheduler.queue.WorkSource;
import dev.nereid.scheduler.rate.RateLimitPermits;
import dev.nereid.scheduler.request.Continuations;
import dev.nereid.scheduler.request.ModelScope;
import dev.nereid.scheduler.request.RequestDrain;
import dev.nereid.scheduler.request.ResponseEvent;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.scheduler.request.SchedulerErrors;
import dev.nereid.spi.BackendException;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.slf4j.event.Level;

/**
 * Executes the batches that one worker takes, and shows the current one to other threads. Executed by the thread that
 * runs the instance.
 */
final class InstanceExecutions {
    private static final Logger LOG = LoggerFactory.getLogger(InstanceExecutions.class);

    private final ExecutionScope scope;
    private final DeviceInstances instances;
    private final WorkSource source;
    private final InstanceHandle handle;
    private final RateLimitPermitAcquirer permitAcquirer;
    private final RequestDrain drain;
    private final ModelScope model;
    private final DirectExecutionPolicy policy;
    private final MemoryFailures memory = new MemoryFailures();
    private final InputStaging staging;
    private final TakenRequests taken;
    private final boolean limited;

    /** Returns whether the instance's own thread may execute a later step: there is no batch for the instance. */
    private final BooleanSupplier freeWithoutWork;

    /** The batch in execution; written by the thread that runs the instance. */
    private volatile @Nullable ExecutionBatch current;

    /** The deferred executions that have not ended, if their number is limited. */
    private final Set<ExecutionBatch> open = ConcurrentHashMap.newKeySet();

    /** The batch of the warm-up in execution; written by the instance's own thread. */
    private volatile @Nullable ExecutionBatch warming;

    /** The last execution that was reported as exceeding its limit; written by the watchdog. */
    private volatile @Nullable ExecutionBatch overdue;

    /** Creates the executions of a worker. The drain counts the requests that use the instances. */
    InstanceExecutions(
            ExecutionScope scope,
            DeviceInstances instances,
            WorkSource source,
            InstanceHandle handle,
            DirectExecutionPolicy policy,
            RateLimitPermitAcquirer permitAcquirer,
            RequestDrain drain) {
        this.scope = scope;
        this.instances = instances;
        this.source = source;
        this.handle = handle;
        this.permitAcquirer = permitAcquirer;
        this.drain = drain;
        this.model = scope.model();
        this.policy = policy;
        this.staging = new InputStaging(
                scope.model().memory(), scope.model().settings().name(), scope.accepted(), instances.device());
        this.taken = new TakenRequests(handle);
        this.limited = instances.permits().areLimited();
        this.freeWithoutWork = () -> !limited && !source.hasWork(handle);
    }

    /** Executes the batch of the handle; {@code direct} if the thread is not the instance's own. */
    void execute(boolean direct) {
        handle.rejectExpired();
        tellEnded();
        boolean clientMemory = scope.clientMemory() && taken.isOneInClientMemory();
        // Also for a backend that declares client memory: the fault of one client must not fail the others of a batch.
        taken.stageInputs(staging, clientMemory);
        taken.use(drain);
        if (taken.hasClients()) {
            ExecutionBatch batch = taken.removeAll(scope);
            // A permit belongs to the next instance, which was available when the batch was taken.
            Instance instance = limited ? instances.next() : instances.nextAvailable();
            if (limited) {
                permitAcquirer.use(batch);
            }
            batch.executedBy(Thread.currentThread(), direct);
            current = batch;
            if (scope.model().detached().areAbandoned()) {
                batch.refuse(scope.model().nanoTime().getAsLong());
            } else {
                run(instance, batch, clientMemory, direct);
            }
            returned(batch);
        }
    }

    /** Executes a batch on an instance, and completes its requests. An error of a backend fails its execution alone. */
    private void run(Instance instance, ExecutionBatch batch, boolean clientMemory, boolean direct) {
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
            record(batch, direct, end - start);
        }
        memory.ended(thrown, end);
        model.fatalErrors().check(thrown);
        Continuations continuations = Continuations.current();
        BooleanSupplier before = continuations.enter(free(batch, direct));
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
            record(batch, direct, end - start + batch.awaitedNanos());
        }
    }

    /** Records how long an execution has held its thread, unless it is one of the warm-up. */
    @SuppressWarnings("ReferenceEquality")
    private void record(ExecutionBatch batch, boolean direct, long nanos) {
        if (direct) {
            policy.recordDirect(nanos, batch.isDeferred());
        } else if (batch != warming) {
            policy.recordOnInstanceThread(nanos);
        }
    }

    /** Returns whether the thread may execute steps that follow from the batch, once it has released the instance. */
    @SuppressWarnings("ReferenceEquality")
    private BooleanSupplier free(ExecutionBatch batch, boolean direct) {
        if (direct) {
            return InstanceExecutions::isAlwaysFree;
        }
        return batch == warming ? () -> false : freeWithoutWork;
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

    private void returned(ExecutionBatch batch) {
        if (batch.isDeferred()) {
            deferred(batch);
        } else {
            current = null;
        }
    }

    /** Leaves an execution that goes on. {@link #use} contains it all the time. */
    private void deferred(ExecutionBatch batch) {
        if (handle.maxDeferred() < Integer.MAX_VALUE) {
            open.add(batch);
        }
        current = null;
        source.deferred(handle);
        batch.onEnd(() -> {
            open.remove(batch);
            source.deferredEnded(handle);
        });
    }

    /** Returns the executions that occupy the instance. Called by any thread; takes no lock. */
    WaitingCalls.InstanceUse use() {
        ExecutionBatch running = current; // first: a batch that is deferred next is found twice, not missed
        return new WaitingCalls.InstanceUse(
                running, running != null && running.isDeferred(), open, handle.maxDeferred());
    }

    /** Notifies the instance of ended sequences. Called by the thread that runs it. */
    void tellEnded() {
        List<InstanceHandle.EndedSequence> ended = handle.ended();
        while (!ended.isEmpty()) {
            InstanceHandle.EndedSequence one = ended.removeFirst();
            instances.forEach(instance -> instance.sequenceEnded(one));
        }
    }

    /** Returns whether a thread in direct execution may execute a later step: it releases its instance before. */
    private static boolean isAlwaysFree() {
        return true;
    }

    /** Completes the requests of the current batch and the requests that were taken, after a failure. */
    void fail(InferenceException error) {
        try {
            failCurrent(error);
        } finally {
            failTaken(_ -> error);
        }
    }

    private void failCurrent(InferenceException error) {
        ExecutionBatch failed = current;
        if (failed == null) {
            return;
        }
        try {
            failed.threw(
                    new ResponseEvent.Failure(error, FailureReason.OTHER),
                    scope.model().nanoTime().getAsLong());
        } finally {
            returned(failed);
        }
    }

    /** Completes the requests that were taken and not executed, after a failure. */
    void failTaken(Function<ScheduledRequest, InferenceException> error) {
        taken.fail(error);
    }

    /** Executes a batch of the warm-up on an instance. Called by the instance's own thread. */
    void warm(Instance instance, ExecutionBatch batch) {
        batch.executedBy(Thread.currentThread(), false);
        warming = batch;
        try {
            warmWithPermit(instance, batch);
        } finally {
            warming = null;
        }
    }

    private void warmWithPermit(Instance instance, ExecutionBatch batch) {
        if (!limited) {
            run(instance, batch, false, false);
            return;
        }
        RateLimitPermits permits = instance.permits();
        permits.request();
        if (!permits.await()) {
            batch.refuse(scope.model().nanoTime().getAsLong());
            return;
        }
        try {
            run(instance, batch, false, false);
        } finally {
            batch.onEnd(permits::release);
        }
    }

    /** Returns the batch in execution; {@code null} for none. Called by any thread. */
    @Nullable
    ExecutionBatch current() {
        return current;
    }

    /** Returns the batch of the warm-up in execution; {@code null} for none. Called by any thread. */
    @Nullable
    ExecutionBatch warming() {
        return warming;
    }

    /** Marks an execution as exceeding its limit; returns whether it goes on. Called by the watchdog. */
    @SuppressWarnings("ReferenceEquality") // Each execution has its own batch.
    boolean overdue(ExecutionBatch batch) {
        boolean goesOn = batch == current || batch == warming;
        if (goesOn) {
            overdue = batch;
        }
        return goesOn;
    }

    /** Returns whether an execution was reported as exceeding its limit. */
    @SuppressWarnings("ReferenceEquality")
    boolean isOverdue(ExecutionBatch batch) {
        return batch == overdue;
    }

    /** Returns whether the current execution was reported as exceeding its limit. */
    boolean isOverdue() {
        ExecutionBatch executed = current;
        return executed != null && isOverdue(executed);
    }

    /** Returns the executions that failed for want of memory. */
    MemoryFailures memory() {
        return memory;
    }

    /** Returns the execution on a thread; empty if the thread executes no batch. Called by that thread. */
    Optional<RunningExecution> executionOn(Thread thread) {
        ExecutionBatch batch = current;
        if (batch == null || !thread.equals(batch.thread())) {
            return Optional.empty();
        }
        return Optional.of(new RunningExecution(policy.areDeclaredShort(), batch.chain(Hold.Kind.THREAD)));
    }

    boolean executesOn(Thread thread) {
        ExecutionBatch batch = current;
        return batch != null && thread.equals(batch.thread());
    }

    /** Abandons the requests in execution. Called by any thread. */
    void abandon() {
        ExecutionBatch batch = current;
        if (batch != null) {
            batch.abandon();
        }
    }

    /**
     * Records executions of one instance that ended with an {@link OutOfMemoryError}. Written by the thread that runs the
     * instance; read by any thread.
     *
     * <p>The instance counts as failing after some failures in a row, since one may be due to its request alone. It does so
     * until an execution succeeds, or a minute has passed: without readiness it may get no requests, and so cannot show that it
     * works again.
     */
    static final class MemoryFailures {
        /** The number of executions in a row that have to fail. */
        static final int MIN_FAILURES = 3;

        /** The time for which failures count. */
        static final long LIMIT_NANOS = TimeUnit.MINUTES.toNanos(1);

        /** Chains of causes may be circular. */
        private static final int MAX_CAUSES = 8;

        private final AtomicLong total = new AtomicLong();
        private volatile int failures;
        private volatile long failedNanos;

        /** Records the end of an execution, and its throwable; {@code null} for none. */
        void ended(@Nullable Throwable thrown, long nowNanos) {
            if (thrown == null) {
                if (failures > 0) {
                    failures = 0;
                }
            } else if (isOutOfMemory(thrown)) {
                failedNanos = nowNanos;
                failures = Math.min(MIN_FAILURES, failures + 1);
                total.incrementAndGet();
            }
        }

        private static boolean isOutOfMemory(Throwable thrown) {
            Throwable candidate = thrown;
            for (int depth = 0; candidate != null && depth < MAX_CAUSES; depth++) {
                if (candidate instanceof OutOfMemoryError) {
                    return true;
                }
                candidate = candidate.getCause();
            }
            return false;
        }

        /** Returns whether the last executions failed for want of memory, and not long ago. */
        boolean isFailing(long nowNanos) {
            return failures >= MIN_FAILURES && nowNanos - failedNanos < LIMIT_NANOS;
        }

        /** Returns the number of executions that failed for want of memory. */
        long total() {
            return total.get();
        }
    }
}
