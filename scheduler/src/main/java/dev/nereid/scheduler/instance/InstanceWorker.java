package dev.nereid.scheduler.instance;

import dev.nereid.api.InferenceException;
import dev.nereid.api.statistics.FailureReason;
import dev.nereid.scheduler.batch.ExecutionBatch;
import dev.nereid.scheduler.batch.ExecutionScope;
import dev.nereid.scheduler.queue.BatchSource;
import dev.nereid.scheduler.queue.InstanceHandle;
import dev.nereid.scheduler.rate.RateLimitPermits;
import dev.nereid.scheduler.request.Continuations;
import dev.nereid.scheduler.request.InputStaging;
import dev.nereid.scheduler.request.RequestDrain;
import dev.nereid.scheduler.request.ResponseEvent;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.scheduler.request.SchedulerErrors;
import dev.nereid.spi.ModelInstance;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Takes batches from a queue and executes them on its instances. Run by one thread at a time: its own, a submitting
 * thread in direct execution, or the thread of a test.
 *
 * <p>After an error, of a backend or of its own, the worker completes the requests that it took and goes on. It leaves
 * the queue only if it is retired, or if its thread could not be started or its warm-up failed. The last worker that
 * leaves completes all waiting requests, and the queue accepts no more.
 */
public final class InstanceWorker implements Runnable {
    private static final Logger LOG = LoggerFactory.getLogger(InstanceWorker.class);

    /** The pause after a failure to take a batch. A repeated failure therefore does not occupy a processor. */
    private static final long PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(10);

    /** The maximum number of batches that a submitting thread executes in a row. */
    private static final int MAX_DIRECT_BATCHES = 4;

    private final ExecutionScope scope;
    private final DeviceInstances instances;
    private final BatchSource source;
    private final DirectExecutionPolicy executions;
    private final BatchRunner runner;
    private final InputStaging staging;
    private final boolean limited;
    private final RateLimitPermitAcquirer permitAcquirer;

    /** Whether the instance's own thread may execute a later step: there is no batch for the instance. */
    private final BooleanSupplier freeWithoutWork;

    private final Warmup warmup;
    private final InstanceHandle handle;

    /** The requests that use the instances. */
    private final RequestDrain drain = new RequestDrain();

    private final AtomicBoolean closed = new AtomicBoolean();
    private volatile boolean retired;

    /** Whether the worker left the queue. */
    private volatile boolean gone;

    /** The batch in execution; written by the thread that runs the instance. */
    private volatile @Nullable ExecutionBatch current;

    /** The batch of the warm-up in execution; written by the instance's own thread. */
    private volatile @Nullable ExecutionBatch warming;

    /** The last execution that was reported as exceeding its limit; written by the watchdog. */
    private volatile @Nullable ExecutionBatch overdue;

    /** Whether the thread that executes will not return from the backend. */
    private volatile boolean lost;

    /**
     * Creates a worker and registers it with the queue.
     *
     * @param instances execute the batches
     * @param source the source of the batches
     * @param executions records how long executions take
     * @param warmup runs before the first batch
     */
    public InstanceWorker(
            ExecutionScope scope,
            DeviceInstances instances,
            BatchSource source,
            DirectExecutionPolicy executions,
            Warmup warmup) {
        this.scope = scope;
        this.instances = instances;
        this.warmup = warmup;
        this.source = source;
        this.executions = executions;
        this.runner = new BatchRunner(scope.model(), executions);
        this.staging = new InputStaging(scope.model(), scope.accepted(), instances.device());
        this.limited = instances.permits().areLimited();
        this.permitAcquirer = new RateLimitPermitAcquirer(instances, source);
        this.freeWithoutWork = () -> !limited && !source.hasWork();
        boolean placed = instances.arePlaced();
        // Last, since a registered worker has to be deregistered.
        this.handle = source.register(this::runDirectly, instances::load);
        if (placed) {
            handle.pin();
        }
    }

    /**
     * Warms the instance up, executes batches, and closes the instance. It executes until the queue is stopped and
     * empty, and waits before the close until no request is in flight. A worker that is retired, or could not be warmed
     * up, waits for its own requests alone.
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
                leaveQueue();
            }
        }
        (staying ? scope.model().drain() : drain).awaitUninterruptibly();
        close();
    }

    /** Places the thread, and warms the instances up. Returns whether all instances that start together are warm. */
    public boolean prepare(Warmup samples) {
        return samples.run(() -> {
            instances.place();
            for (int i = 0; i < instances.size(); i++) {
                ManagedInstance instance = instances.next();
                samples.warm(instance.name(), batch -> warm(instance, batch));
            }
        });
    }

    private void warm(ManagedInstance instance, ExecutionBatch batch) {
        batch.executedBy(Thread.currentThread());
        warming = batch;
        try {
            warmWithPermit(instance, batch);
        } finally {
            warming = null;
        }
    }

    private void warmWithPermit(ManagedInstance instance, ExecutionBatch batch) {
        if (!limited) {
            runner.warm(instance, batch);
            return;
        }
        RateLimitPermits permits = instance.permits();
        permits.request();
        if (!permits.await()) {
            batch.refuse(scope.model().nanoTime().getAsLong());
            return;
        }
        try {
            runner.warm(instance, batch);
        } finally {
            batch.onEnd(permits::release);
        }
    }

    private void serve() {
        boolean more = true;
        while (more) {
            try {
                more = serveOnce();
            } catch (Throwable e) { // such as no memory for a batch
                recover(e);
                LockSupport.parkNanos(this, PAUSE_NANOS);
            }
        }
    }

    /** Waits for a batch and executes it; returns whether more may follow. */
    private boolean serveOnce() {
        if (limited) {
            boolean begun = permitAcquirer.await(handle);
            if (begun) {
                workWithPermit();
            }
            return begun;
        }
        boolean taken = source.take(handle);
        if (taken) {
            workAndContinue();
        }
        return taken;
    }

    /** Completes the requests that were taken, after a failure outside of the backend. */
    private void recover(Throwable cause) {
        try {
            scope.model().fatalErrors().check(cause);
            LOG.atError().addKeyValue("instance", name()).setCause(cause).log("instance failed to execute a batch");
            InferenceException error = SchedulerErrors.internal(cause);
            while (!handle.taken().isEmpty()) {
                ScheduledRequest request = handle.taken().removeLast();
                request.complete(new ResponseEvent.Failure(error, FailureReason.OTHER));
                request.release();
            }
        } catch (Throwable again) { // no memory for the error: the requests left are executed next
            scope.model().fatalErrors().check(again);
        }
    }

    /** Returns the name of the instance, or of the device that several share. */
    public String name() {
        return instances.name();
    }

    /** Returns whether the worker runs an instance, by identity. */
    public boolean has(ModelInstance instance) {
        return instances.has(instance);
    }

    /** Returns whether the instance is ready. Called by any thread. */
    boolean isReady() {
        return instances.areReady();
    }

    /** Stops the instance from taking requests; it is closed when its requests are done. Called by any thread. */
    public void retire() {
        retired = true;
        source.retire(handle);
        instances.cancelPermits();
    }

    /** Returns whether the instance takes no more requests. */
    public boolean isRetired() {
        return retired;
    }

    /** Returns whether the worker left the queue: it is retired, or its thread ended. */
    public boolean isGone() {
        return gone;
    }

    /**
     * Closes the instance once no request uses it, unless it is closed. Other threads call this only after the worker's
     * own thread has ended. A failed worker may have left deferred executions, and open responses.
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
            boolean begun = permitAcquirer.tryBegin();
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
            work(false);
        } finally { // also after an error: the instances of those steps wait for this thread
            Continuations.current().run();
        }
    }

    /** Executes a batch with the permit that was acquired. */
    private void workWithPermit() {
        RateLimitPermits permits = instances.permits();
        boolean more = false;
        try {
            if (source.poll(handle)) {
                work(false);
                more = !retired && permitAcquirer.isWorthAnother();
            }
        } finally {
            permitAcquirer.end(permits, more);
        }
    }

    /**
     * Executes the batch of the handle on a submitting thread. A few batches that are ready afterwards follow: a
     * wake-up of the instance's own thread costs more than most short executions. Never throws.
     */
    private void runDirectly() {
        int batches = 0;
        boolean more = true;
        while (more) {
            boolean failed = false;
            try {
                work(true);
            } catch (Throwable e) { // not an error of the caller's own request
                failed = true;
                recover(e);
            }
            batches++;
            try {
                boolean mayGoOn = batches < MAX_DIRECT_BATCHES
                        && !failed
                        && executions.areTrusted()
                        && !Continuations.current().hasExecutions();
                more = source.finishDirectRun(handle, mayGoOn);
            } catch (Throwable e) { // the instance's own thread is woken
                more = false;
                scope.model().fatalErrors().check(e);
            }
        }
        Continuations.current().run();
    }

    /** Leaves the queue, and completes requests that no instance is left to execute. */
    void leaveQueue() {
        gone = true;
        instances.closePermits();
        handle.rejectExpired();
        for (ScheduledRequest request : handle.taken()) { // left from a failure
            request.fail(SchedulerErrors.of(SchedulerErrors.noInstance(request.checked())), FailureReason.OTHER);
            request.release();
        }
        handle.taken().clear();
        for (ScheduledRequest request : source.deregister()) {
            request.reject(SchedulerErrors.noInstance(request.checked()), FailureReason.OTHER);
        }
    }

    /**
     * Executes the batch of the handle.
     *
     * @param direct whether the thread is not the instance's own
     */
    private void work(boolean direct) {
        handle.rejectExpired();
        for (int i = 0; i < handle.taken().size(); i++) {
            handle.taken().get(i).usedBy(drain);
        }
        boolean clientMemory = scope.clientMemory()
                && handle.taken().size() == 1
                && handle.taken().getFirst().usesClientMemory();
        // Also for a backend that declares client memory: the fault of one client must not fail the others of a batch.
        stageInputs(clientMemory);
        if (!handle.taken().isEmpty()) {
            ExecutionBatch batch = new ExecutionBatch(scope, handle.taken());
            handle.taken().clear();
            ManagedInstance instance = instances.next();
            if (limited) {
                permitAcquirer.use(batch);
            }
            batch.executedBy(Thread.currentThread());
            current = batch;
            try {
                if (scope.model().detached().areAbandoned()) {
                    batch.refuse(scope.model().nanoTime().getAsLong());
                } else {
                    runner.run(
                            instance,
                            batch,
                            clientMemory,
                            direct,
                            direct ? InstanceWorker::isAlwaysFree : freeWithoutWork);
                }
            } catch (Throwable e) { // the batch is not completed yet
                batch.threw(
                        new ResponseEvent.Failure(SchedulerErrors.internal(e), FailureReason.OTHER),
                        scope.model().nanoTime().getAsLong());
                throw e;
            } finally {
                current = null;
            }
        }
    }

    /** Returns whether a thread in direct execution may execute a later step: it releases its instance before. */
    private static boolean isAlwaysFree() {
        return true;
    }

    /** Moves inputs to memory that the instances accept; removes requests that completed because that failed. */
    private void stageInputs(boolean inPlace) {
        for (int i = handle.taken().size() - 1; i >= 0; i--) {
            if (!handle.taken().get(i).stageInputs(staging, inPlace)) {
                handle.taken().remove(i);
            }
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
    public boolean isOverdue() {
        ExecutionBatch executed = current;
        return executed != null && isOverdue(executed);
    }

    /** Returns whether a thread executes a batch of this worker. */
    public boolean executesOn(Thread thread) {
        ExecutionBatch batch = current;
        return batch != null && thread.equals(batch.thread());
    }

    /**
     * Abandons an execution whose thread will not return from the backend. The thread ends the process. Its requests
     * complete and are no longer counted as in flight, and the instance is never closed. Called by any thread.
     */
    public void lose() {
        lost = true;
        retire();
        abandon();
        leaveQueue();
        for (int left = drain.count(); left > 0; left--) {
            scope.model().drain().deregister();
        }
    }

    /** Returns whether {@link #lose} was called. */
    boolean isLost() {
        return lost;
    }

    /** Abandons the requests in execution. Called by any thread. */
    void abandon() {
        ExecutionBatch batch = current;
        if (batch != null) {
            batch.abandon();
        }
    }
}
