package dev.nereid.scheduler.instance;

import dev.nereid.api.InferenceException;
import dev.nereid.api.statistics.FailureReason;
import dev.nereid.scheduler.admission.InFlightRequests;
import dev.nereid.scheduler.batch.ExecutionBatch;
import dev.nereid.scheduler.batch.ExecutionScope;
import dev.nereid.scheduler.queue.BatchSource;
import dev.nereid.scheduler.queue.InstanceHandle;
import dev.nereid.scheduler.rate.RateLimitPermits;
import dev.nereid.scheduler.request.ResponseEvent;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.scheduler.request.SchedulerErrors;
import dev.nereid.spi.ModelInstance;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Takes batches from a queue and executes them on its instances. Run by one thread at a time: its own, one to which the
 * seat of the instance was lent, or that of a test which goes step by step.
 *
 * <p>Whatever is thrown, by a backend or here, the requests that were taken are answered and the worker goes on. A
 * worker gives up its place at the queue only if it is retired, or if its thread could not be started or its warm-up
 * failed. Without any worker the last one answers all that waits, and the queue takes no more.
 */
public final class InstanceWorker implements Runnable {
    private static final Logger LOG = LoggerFactory.getLogger(InstanceWorker.class);

    /** How long the worker pauses after it failed to take a batch: a fault that repeats must not take a processor. */
    private static final long PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(10);

    /** So many batches may the thread of one request execute. */
    private static final int MAX_DIRECT_BATCHES = 4;

    private final ExecutionScope scope;
    private final DeviceInstances instances;
    private final BatchSource source;
    private final ShortExecutions executions;
    private final BatchRunner runner;
    private final boolean limited;
    private final RateLimitPermitAcquirer permitAcquirer;
    private final Warmup warmup;
    private final InstanceHandle handle;

    /** The calls that the instances are not done with. */
    private final InFlightRequests requests = new InFlightRequests();

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
    public InstanceWorker(
            ExecutionScope scope,
            DeviceInstances instances,
            BatchSource source,
            ShortExecutions executions,
            Warmup warmup) {
        this.scope = scope;
        this.instances = instances;
        this.warmup = warmup;
        this.source = source;
        this.executions = executions;
        this.runner = new BatchRunner(scope.model(), executions);
        this.limited = instances.permits().areLimited();
        this.permitAcquirer = new RateLimitPermitAcquirer(instances, source);
        boolean placed = instances.arePlaced();
        this.handle = source.register(this::runDirectly, instances::load); // last: a seat that is taken has to be left
        if (placed) {
            handle.pin();
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
                leaveQueue();
            }
        }
        (staying ? scope.model().inFlight() : requests).awaitNone();
        close();
    }

    /** Puts the thread in its place, and warms the instances up; returns whether all that start together are warm. */
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
        RateLimitPermits turns = instance.permits();
        turns.request();
        if (!turns.await()) {
            batch.refuse(scope.model().nanoTime().getAsLong());
            return;
        }
        try {
            runner.warm(instance, batch);
        } finally {
            batch.onEnd(turns::release);
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
            boolean begun = permitAcquirer.await(handle);
            if (begun) {
                workWithPermit();
            }
            return begun;
        }
        boolean taken = source.take(handle);
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
            while (!handle.taken().isEmpty()) {
                ScheduledRequest request = handle.taken().removeLast();
                request.complete(new ResponseEvent.Failure(error, FailureReason.OTHER));
                request.release();
            }
        } catch (Throwable again) { // no memory to say so: whatever is left at the seat is executed next
            scope.model().fatalErrors().check(again);
        }
    }

    /** Returns the name of the instance, or of the device that several share. */
    public String name() {
        return instances.name();
    }

    /** Says whether the worker has this very instance. */
    public boolean has(ModelInstance instance) {
        return instances.has(instance);
    }

    /** Says whether the instance is ready. Any thread may ask. */
    boolean isReady() {
        return instances.areReady();
    }

    /** Has the instance take no more requests; it is closed when those it has are done. Any thread may call this. */
    public void retire() {
        retired = true;
        source.retire(handle);
        instances.cancelPermits();
    }

    /** Says whether the instance is to take no more requests. */
    public boolean isRetired() {
        return retired;
    }

    /** Says whether the instance has given up its place at the queue: it is retired, or its thread came to its end. */
    public boolean isGone() {
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
        requests.awaitNone();
        if (closed.compareAndSet(false, true)) {
            instances.close();
        }
    }

    /** Does what can be done without waiting: one batch at most. */
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
            work(false);
        }
        return found;
    }

    /** Does what there is when the turn has come. */
    private void workWithPermit() {
        RateLimitPermits turns = instances.permits();
        boolean more = false;
        try {
            if (source.poll(handle)) {
                work(false);
                more = !retired && permitAcquirer.isWorthAnother();
            }
        } finally {
            permitAcquirer.end(turns, more);
        }
    }

    /**
     * Executes the batch that lies at the seat on a thread that submits requests, and a little of what comes meanwhile:
     * to wake the instance's own thread for it costs more than most short executions. Never throws.
     */
    private void runDirectly() {
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
                more = source.finishDirectRun(
                        handle, batches < MAX_DIRECT_BATCHES && !failed && executions.areTrusted());
            } catch (Throwable e) { // the instance's own thread was called
                more = false;
                scope.model().fatalErrors().check(e);
            }
        }
    }

    /** Gives up the place at the queue, and answers what nobody is left to execute. */
    void leaveQueue() {
        gone = true;
        instances.closePermits();
        handle.rejectExpired();
        for (ScheduledRequest request : handle.taken()) { // if taking them failed after others had begun
            request.fail(SchedulerErrors.of(SchedulerErrors.noInstance(request.checked())), FailureReason.OTHER);
            request.release();
        }
        handle.taken().clear();
        for (ScheduledRequest request : source.deregister()) {
            request.reject(SchedulerErrors.noInstance(request.checked()), FailureReason.OTHER);
        }
    }

    /**
     * Does what lies at the seat.
     *
     * @param lent whether the thread is not the instance's own
     */
    private void work(boolean lent) {
        handle.rejectExpired();
        for (int i = 0; i < handle.taken().size(); i++) {
            handle.taken().get(i).usedBy(requests);
        }
        boolean clientMemory = scope.clientMemory()
                && handle.taken().size() == 1
                && handle.taken().getFirst().usesClientMemory();
        if (!clientMemory) {
            // Also for a backend that can stand it: the fault of one client must not fail the others of a batch.
            copyClientMemory();
        }
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
                    runner.run(instance, batch, clientMemory, lent);
                }
            } catch (Throwable e) { // the batch is not answered yet
                batch.threw(
                        new ResponseEvent.Failure(SchedulerErrors.internal(e), FailureReason.OTHER),
                        scope.model().nanoTime().getAsLong());
                throw e;
            } finally {
                current = null;
            }
        }
    }

    /** Removes those requests whose inputs went away; they are answered. */
    private void copyClientMemory() {
        for (int i = handle.taken().size() - 1; i >= 0; i--) {
            if (!handle.taken().get(i).copyClientMemory()) {
                handle.taken().remove(i);
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
    public boolean isOverdue() {
        ExecutionBatch executed = current;
        return executed != null && isOverdue(executed);
    }

    /** Says whether a thread is in the backend with requests of this worker. */
    public boolean executesOn(Thread thread) {
        ExecutionBatch batch = current;
        return batch != null && thread.equals(batch.thread());
    }

    /**
     * Gives up an execution whose thread will not return from the backend, since it ends the process: its requests are
     * answered and waited for by nobody, and the instance is never closed. Any thread may call this.
     */
    public void lose() {
        lost = true;
        retire();
        abandon();
        leaveQueue();
        for (int left = requests.count(); left > 0; left--) {
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
