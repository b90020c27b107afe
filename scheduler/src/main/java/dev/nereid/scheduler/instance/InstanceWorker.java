package dev.nereid.scheduler.instance;

import dev.nereid.api.InferenceException;
import dev.nereid.api.statistics.FailureReason;
import dev.nereid.scheduler.batch.ExecutionBatch;
import dev.nereid.scheduler.batch.ExecutionScope;
import dev.nereid.scheduler.client.RunningExecution;
import dev.nereid.scheduler.client.WaitingCalls;
import dev.nereid.scheduler.queue.InstanceHandle;
import dev.nereid.scheduler.queue.WorkSource;
import dev.nereid.scheduler.rate.RateLimitPermits;
import dev.nereid.scheduler.request.Continuations;
import dev.nereid.scheduler.request.DetachedRequests;
import dev.nereid.scheduler.request.IndependentCalls;
import dev.nereid.scheduler.request.RequestDrain;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.scheduler.request.SchedulerErrors;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Function;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Takes batches from a source and executes them on its instances. Run by one thread at a time: its own, which may start
 * with the first batch that needs it and end while there is no work, a submitting thread in direct execution, or the
 * thread of a test.
 *
 * <p>After an error of a backend or of the worker, the worker completes the requests that it took and goes on. It
 * leaves the source only if it is retired, or if its thread could not be started or its warm-up failed. The last worker
 * that leaves completes all waiting requests, and the queue accepts no more.
 */
public final class InstanceWorker implements Runnable {
    private static final Logger LOG = LoggerFactory.getLogger(InstanceWorker.class);

    /** The pause after a failure to take a batch. A repeated failure therefore does not occupy a processor. */
    private static final long PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(10);

    /** The maximum number of batches that a submitting thread executes in a row. */
    private static final int MAX_DIRECT_BATCHES = 4;

    private final ExecutionScope scope;
    private final DeviceInstances instances;
    private final WorkSource source;
    private final DirectExecutionPolicy policy;
    private final boolean limited;
    private final RateLimitPermitAcquirer permitAcquirer;

    private final Warmup warmup;
    private final InstanceHandle handle;
    private final InstanceExecutions executions;

    private final RequestDrain drain;

    /** The number of reported deferred executions that exceed their limit and go on; written by the watchdog. */
    private volatile int overdueDeferred;

    /** {@code true} if the instances are warm. Confined to the worker's own threads, of which one follows the other. */
    private boolean warm;

    private final AtomicBoolean closed = new AtomicBoolean();
    private volatile boolean retired;

    /** {@code true} if the retired worker may still take the batches that are bound to it. */
    private volatile boolean takesBound;

    /** {@code true} if the worker left the queue. */
    private final AtomicBoolean gone = new AtomicBoolean();

    private final AtomicBoolean lose = new AtomicBoolean();

    /** {@code true} if the thread that executes will not return from the backend. */
    private volatile boolean lost;

    /** Creates a worker and registers it with the queue. The warm-up runs before the first batch. */
    public InstanceWorker(
            ExecutionScope scope,
            DeviceInstances instances,
            WorkSource source,
            DirectExecutionPolicy policy,
            int maxDeferred,
            Warmup warmup) {
        this.scope = scope;
        this.instances = instances;
        this.drain = scope.model().drainOf(instances.name(), instances.device());
        this.warmup = warmup;
        this.source = source;
        this.policy = policy;
        this.limited = instances.permits().areLimited();
        this.permitAcquirer = new RateLimitPermitAcquirer(instances, source);
        boolean placed = instances.arePlaced();
        // Last, since a registered worker has to be deregistered.
        this.handle = source.register(this::runDirectly, instances::load);
        handle.limitDeferred(maxDeferred);
        this.executions = new InstanceExecutions(scope, instances, source, handle, policy, permitAcquirer, drain);
        if (placed) {
            handle.pin();
        }
        instances.forEach(instance ->
                instance.availability().onChange(() -> source.availabilityChanged(handle, instances::areUnavailable)));
    }

    /**
     * Warms the instance up, executes batches, and closes the instance. It executes until the queue is stopped and
     * empty, and waits before the close until no request is in flight. A worker that is retired, or could not be warmed
     * up, waits for its own requests alone.
     */
    @Override
    public void run() {
        boolean over = false;
        while (!over) {
            over = runWhileUsed();
        }
    }

    /**
     * Runs like {@link #run}, but returns early if the thread may end, since the instance had no work for some time.
     *
     * @return whether the worker has ended; {@code false} if it waits for work without a thread
     */
    boolean runWhileUsed() {
        boolean staying = false;
        boolean over = true;
        try {
            if (begin()) {
                over = serve();
                staying = !over || !retired;
            }
        } finally {
            if (!staying) {
                leaveQueue();
            }
        }
        if (over) {
            (staying ? scope.model().drain() : drain).awaitUninterruptibly();
            close();
        }
        return over;
    }

    /** Prepares the calling thread, the first one with a warm-up. Returns whether all instances are warm. */
    private boolean begin() {
        if (warm) {
            instances.place();
        } else {
            warm = prepare(warmup);
        }
        return warm;
    }

    /** Places the thread, and warms the instances up. Returns whether all instances that start together are warm. */
    public boolean prepare(Warmup samples) {
        return samples.run(() -> {
            instances.place();
            instances.forEach(instance -> samples.warm(instance.name(), batch -> executions.warm(instance, batch)));
        });
    }

    /** Executes batches. Returns whether no more may follow; {@code false} if the thread has left the instance. */
    private boolean serve() {
        boolean more = true;
        Throwable failure = null;
        while (more) {
            try {
                if (failure != null) {
                    recoverAndPause(failure); // may fail, too
                    failure = null;
                }
                more = serveOnce();
            } catch (Throwable e) { // outside of an execution
                failure = e;
            }
        }
        return !source.leave(handle); // nothing of the worker is used afterwards
    }

    /** Waits for a batch and executes it; returns whether more may follow on this thread. */
    private boolean serveOnce() {
        if (limited) {
            boolean begun = permitAcquirer.await(handle);
            if (begun) {
                workWithPermit();
            }
            return begun;
        }
        boolean found = source.take(handle);
        if (found) {
            workAndContinue();
        }
        return found;
    }

    private void recoverAndPause(Throwable cause) {
        try {
            recover(cause);
        } finally {
            LockSupport.parkNanos(this, PAUSE_NANOS);
        }
    }

    /** Completes the requests that were taken, after a failure outside of the backend. */
    private void recover(Throwable cause) {
        try {
            scope.model().fatalErrors().check(cause);
        } finally {
            executions.fail(SchedulerErrors.internal(cause));
        }
        LOG.atError()
                .addKeyValue("instance", name())
                .setCause(cause)
                .log(
                        "instance failed to execute a batch (model '{}', version {}, instance '{}')",
                        scope.model().settings().name(),
                        scope.model().settings().version(),
                        name());
    }

    /** Returns the name of the instance, or of the device that several share. */
    public String name() {
        return instances.name();
    }

    /** Returns whether the worker runs an instance, by identity. */
    public boolean has(Instance instance) {
        return instances.has(instance);
    }

    /** Returns the instances that the worker runs. Called by any thread. */
    List<Instance> instances() {
        return instances.all();
    }

    /**
     * Allows the worker's thread to end while there is no work. Called before the thread starts.
     *
     * @param starter as in {@link #addUnstarted}
     */
    void restartBy(Runnable starter) {
        handle.restartBy(starter);
    }

    /** Ends the worker's thread if it waits for work since a time or longer. Called by any thread. */
    void rest(long sinceNanos) {
        source.rest(handle, sinceNanos);
    }

    /**
     * Registers the instance for its first batch without a thread.
     *
     * @param starter starts the thread that runs this worker, or calls {@link #startFailed}; must not throw
     */
    void addUnstarted(Runnable starter) {
        source.addUnstarted(handle, starter);
    }

    /** Completes, for the starter, the requests that need the thread that could not be started, with their errors. */
    void startFailed(Function<ScheduledRequest, InferenceException> error) {
        try {
            completeTaken(error);
        } finally {
            IndependentCalls.rejectAll(source.startFailed(handle), error, FailureReason.OTHER);
        }
    }

    private void completeTaken(Function<ScheduledRequest, InferenceException> error) {
        try {
            handle.rejectExpired();
        } finally {
            executions.failTaken(error);
        }
    }

    /**
     * Leaves the queue with an instance that never had and never gets a thread. Waits while a submitting thread
     * executes a batch on the instance.
     */
    void leaveUnstarted() {
        source.removeUnstarted(handle);
        leaveQueue();
    }

    /** Returns whether the instance's own thread is placed. */
    boolean isPlaced() {
        return instances.arePlaced();
    }

    /** Returns whether no request uses the instances. */
    boolean isUnused() {
        return drain.count() == 0;
    }

    /** Stops the instance from taking requests; it is closed when its requests are done. Called by any thread. */
    public void retire() {
        retired = true;
        takesBound = source.retire(handle);
        if (!takesBound) {
            instances.cancelPermits();
        }
    }

    /** Returns whether the worker is retired, and may still have to take batches that are bound to it. */
    boolean mayTakeBound() {
        return takesBound;
    }

    /** Returns whether the instance takes no more requests. */
    public boolean isRetired() {
        return retired;
    }

    /** Returns whether the worker left the queue: it is retired, or has ended. */
    public boolean isGone() {
        return gone.get();
    }

    /**
     * Closes the instance once no request uses it, unless it is closed. Other threads call this only after the worker's
     * own thread has ended, or if it was never started. A failed worker may have left deferred executions, and open responses.
     */
    void close() {
        if (lost) {
            return;
        }
        drain.awaitUninterruptibly();
        if (closed.compareAndSet(false, true)) {
            instances.close();
        }
    }

    /** Executes one batch at most, without waiting; returns whether there was one. */
    public boolean step() {
        if (limited) {
            boolean begun = permitAcquirer.tryBegin(handle);
            if (begun) {
                workWithPermit();
            }
            return begun;
        }
        boolean found = source.poll(handle);
        if (found) {
            workAndContinue();
        }
        return found;
    }

    /** Executes the batch of the handle on the instance's own thread, and then the steps that it took over. */
    private void workAndContinue() {
        try {
            execute(false);
        } finally { // also after an error: the instances of those steps wait for this thread
            Continuations.current().run();
        }
    }

    /** Executes a batch with the permit that was acquired. */
    private void workWithPermit() {
        RateLimitPermits permits = instances.permits();
        boolean more = false;
        try {
            // The others of a device may take batches while this one does not. If none does, a sequence may have ended.
            if ((instances.isNextAvailable() || instances.areUnavailable()) && source.poll(handle)) {
                more = execute(false) && !retired && permitAcquirer.isWorthAnother(handle);
            }
        } finally {
            permitAcquirer.end(permits, more);
        }
    }

    /**
     * Executes the batch of the handle on a submitting thread. A few batches that are ready afterwards follow: a
     * wake-up of the instance's own thread costs more than most short executions.
     */
    private void runDirectly() {
        try {
            boolean more = true;
            for (int batches = 1; more; batches++) {
                boolean succeeded = false;
                try {
                    succeeded = execute(true);
                } finally { // whatever happened: the instance has no other thread
                    more = source.finishDirectRun(handle, succeeded && mayGoOn(batches));
                }
            }
        } finally { // as in workAndContinue
            Continuations.current().run();
        }
    }

    /** Returns whether a submitting thread may execute another batch after some. */
    private boolean mayGoOn(int batches) {
        return batches < MAX_DIRECT_BATCHES
                && policy.areTrusted()
                && !Continuations.current().hasExecution();
    }

    /**
     * Executes the batch of the handle, and completes its requests if that fails outside of the backend. They are
     * complete before the thread does anything else, such as further steps.
     *
     * @param direct whether the thread is not the instance's own
     * @return whether nothing failed
     */
    private boolean execute(boolean direct) {
        boolean succeeded = false;
        try {
            executions.execute(direct);
            succeeded = true;
        } catch (Throwable e) { // such as one of the flow of a client, or of a plugin that used up the stack
            recover(e);
        }
        return succeeded;
    }

    /** Leaves the queue, and completes requests if no instance is left to execute them. */
    void leaveQueue() {
        if (!gone.compareAndSet(false, true)) { // lost, and its thread returned after all
            return;
        }
        instances.closePermits();
        Function<ScheduledRequest, InferenceException> error = request -> SchedulerErrors.noInstance(request.checked());
        try {
            completeTaken(error); // left from a failure
        } finally {
            IndependentCalls.rejectAll(source.deregister(handle), error, FailureReason.OTHER);
        }
        if (!lost) {
            executions.tellEnded();
        }
    }

    InstanceExecutions executions() {
        return executions;
    }

    /** Returns whether the current execution was reported as exceeding its limit. */
    public boolean isExecutionOverdue() {
        return executions.isOverdue();
    }

    /** Returns whether an execution, deferred or not, was reported as exceeding its limit and goes on. */
    public boolean isOverdue() {
        return overdueDeferred > 0 || executions.isOverdue();
    }

    /** Returns the number of executions, deferred or not, that were reported as exceeding their limit and go on. */
    public int overdue() {
        return overdueDeferred + (executions.isOverdue() ? 1 : 0);
    }

    /** Sets the number of deferred executions that exceed their limit. Called by the watchdog. */
    void overdueDeferred(int count) {
        overdueDeferred = count;
    }

    /** Returns whether the last executions failed for want of memory, and not long ago. */
    public boolean isOutOfMemory() {
        return executions.memory().isFailing(scope.model().nanoTime().getAsLong());
    }

    /** Returns the number of executions that failed for want of memory. */
    public long outOfMemoryTotal() {
        return executions.memory().total();
    }

    /** Returns the execution on a thread; empty if the thread executes no batch of this worker. */
    public Optional<RunningExecution> executionOn(Thread thread) {
        return executions.executionOn(thread);
    }

    /** Returns the executions that occupy the worker's instances. Called by any thread; takes no lock. */
    public WaitingCalls.InstanceUse use() {
        return executions.use();
    }

    /** Returns the thread that executes a batch of this worker; empty for none. */
    public Optional<Thread> executing() {
        ExecutionBatch batch = executions.current();
        return batch == null ? Optional.empty() : Optional.ofNullable(batch.thread());
    }

    public boolean executesOn(Thread thread) {
        return executions.executesOn(thread);
    }

    /**
     * Abandons an execution with a thread that will not return from the backend. The thread ends the process. Its
     * requests complete and are no longer counted as in flight, and the instance is never closed. Called by any thread.
     */
    public void lose() {
        if (!lose.compareAndSet(false, true)) {
            return;
        }
        lost = true;
        Set<DetachedRequests.Detached> left =
                new HashSet<>(scope.model().detached().of(drain));
        ExecutionBatch batch = executions.current();
        if (batch != null) {
            left.addAll(batch.scheduled());
        }
        retire();
        instances.cancelPermits(); // also of one that keeps its sequences: its own thread may wait for a permit
        source.lose(handle);
        left.forEach(DetachedRequests.Detached::abandon);
        leaveQueue();
        left.forEach(DetachedRequests.Detached::lose);
    }

    /** Returns whether {@link #lose} was called. */
    boolean isLost() {
        return lost;
    }
}
