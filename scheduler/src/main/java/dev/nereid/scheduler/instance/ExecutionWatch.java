package dev.nereid.scheduler.instance;

import dev.nereid.api.BackendCallbacks;
import dev.nereid.api.ThreadStack;
import dev.nereid.scheduler.batch.ExecutionBatch;
import dev.nereid.scheduler.request.DetachedRequests;
import dev.nereid.scheduler.request.ModelScope;
import dev.nereid.scheduler.time.Watchdog;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reports executions of one model that exceed their time limit. Confined to the thread of the watchdog, except for
 * {@link #total}.
 *
 * <p>An execution of a warm-up has the limit of loads. Deferred executions are reported too, although these hold no
 * thread, with the threads that are in code of the backend. Deferred executions of decoupled models are not reported,
 * since they may respond for any time.
 */
public final class ExecutionWatch implements Watchdog.Watched {
    private static final Logger LOG = LoggerFactory.getLogger(ExecutionWatch.class);

    /** The maximum number of request ids in a report. */
    private static final int MAX_IDS = 16;

    private final ModelScope model;
    private final Supplier<List<InstanceWorker>> workers;
    private final Function<Thread, StackTraceElement[]> stacks;
    private final BackendCallbacks backend;
    private final Duration executionLimit;
    private final Duration loadLimit;
    private final AtomicLong total = new AtomicLong();

    /** The requests in deferred executions that were reported; replaced as a whole. */
    private volatile Set<DetachedRequests.Detached> deferred = Set.of();

    /** Creates a watch with time limits, zero for none; {@code backend} finds the threads of the backend. */
    public ExecutionWatch(
            ModelScope model,
            InstanceThreads threads,
            BackendCallbacks backend,
            Duration executionLimit,
            Duration loadLimit) {
        this(model, threads::workers, backend, Thread::getStackTrace, executionLimit, loadLimit);
    }

    /** Creates a watch of some workers. {@code stacks} returns the stack of a thread. */
    ExecutionWatch(
            ModelScope model,
            Supplier<List<InstanceWorker>> workers,
            BackendCallbacks backend,
            Function<Thread, StackTraceElement[]> stacks,
            Duration executionLimit,
            Duration loadLimit) {
        this.model = model;
        this.backend = backend;
        this.workers = workers;
        this.stacks = stacks;
        this.executionLimit = executionLimit;
        this.loadLimit = loadLimit;
    }

    /** Returns the number of requests with deferred executions that were reported and go on. */
    public int deferred() {
        return deferred.size();
    }

    /** Returns the number of executions that exceeded their limit since the load. */
    public long total() {
        return total.get();
    }

    public Duration limit() {
        return executionLimit;
    }

    @Override
    public void check(long nowNanos) {
        for (InstanceWorker worker : workers.get()) {
            check(
                    worker,
                    worker.executions().current(),
                    executionLimit,
                    "execution takes longer than its limit",
                    nowNanos);
            check(
                    worker,
                    worker.executions().warming(),
                    loadLimit,
                    "execution of warm-up takes longer than its limit",
                    nowNanos);
        }
        checkDeferred(nowNanos);
    }

    private void checkDeferred(long nowNanos) {
        if (executionLimit.isZero() || model.settings().decoupled()) {
            return;
        }
        List<DetachedRequests.Detached> overdue = model.detached().startedBefore(nowNanos - executionLimit.toNanos());
        List<DetachedRequests.Detached> found =
                overdue.stream().filter(one -> !deferred.contains(one)).toList();
        deferred = Set.copyOf(overdue);
        for (InstanceWorker worker : workers.get()) {
            worker.overdueDeferred(executions(of(worker, overdue)));
            List<DetachedRequests.Detached> reported = of(worker, found);
            if (!reported.isEmpty()) {
                report(worker, reported, nowNanos);
            }
        }
    }

    /** Selects the requests of one instance but for those of its thread's execution, which is checked separately. */
    private static List<DetachedRequests.Detached> of(InstanceWorker worker, List<DetachedRequests.Detached> requests) {
        ExecutionBatch current = worker.executions().current();
        return requests.stream()
                .filter(one -> one.instance().equals(worker.name()))
                .filter(one -> current == null || one.startedNanos() != current.startNanos())
                .toList();
    }

    /** Counts the executions of requests of one instance. Requests of one execution have begun together. */
    private static int executions(List<DetachedRequests.Detached> requests) {
        return (int) requests.stream()
                .mapToLong(DetachedRequests.Detached::startedNanos)
                .distinct()
                .count();
    }

    private void report(InstanceWorker worker, List<DetachedRequests.Detached> requests, long nowNanos) {
        total.addAndGet(executions(requests));
        long elapsed = nowNanos - requests.getFirst().startedNanos();
        LOG.atWarn()
                .addKeyValue("model", model.settings().name())
                .addKeyValue("version", model.settings().version())
                .addKeyValue("instance", worker.name())
                .addKeyValue(
                        "requestIds",
                        ids(requests.stream().map(DetachedRequests.Detached::id).toList()))
                .addKeyValue("elapsedMillis", TimeUnit.NANOSECONDS.toMillis(elapsed))
                .addKeyValue("limitMillis", executionLimit.toMillis())
                .setCause(backend.stacks(model.settings()))
                .log(
                        "deferred execution takes longer than its limit (model '{}', version {}, instance '{}', after {} ms, limit {} ms)",
                        model.settings().name(),
                        model.settings().version(),
                        worker.name(),
                        TimeUnit.NANOSECONDS.toMillis(elapsed),
                        executionLimit.toMillis());
        notifyBackend(worker);
    }

    /**
     * Notifies the instances of a worker, on a thread that may wait; the execution may belong to only one of several on
     * a device.
     */
    private void notifyBackend(InstanceWorker worker) {
        for (Instance instance : worker.instances()) {
            backend.execute(instance::executionOverdue);
        }
    }

    private void check(
            InstanceWorker worker, @Nullable ExecutionBatch batch, Duration limit, String event, long nowNanos) {
        if (batch == null || limit.isZero() || worker.executions().isOverdue(batch) || !batch.isStarted()) {
            return;
        }
        long elapsed = nowNanos - batch.startNanos();
        Thread thread = batch.thread();
        if (elapsed < limit.toNanos() || thread == null) {
            return;
        }
        boolean isDelivering = batch.hasReturned();
        StackTraceElement[] stack = stacks.apply(thread);
        if (batch.hasReturned()
                != isDelivering) { // the stack may be that of an observer; the next check reads it again
            return;
        }
        if (!worker.executions().overdue(batch)) { // ended by now: the stack may be that of another execution
            return;
        }
        if (batch == worker.executions().current()) {
            total.incrementAndGet();
        }
        LOG.atWarn()
                .addKeyValue("model", model.settings().name())
                .addKeyValue("version", model.settings().version())
                .addKeyValue("instance", worker.name())
                .addKeyValue("requestIds", ids(batch.requestIds()))
                .addKeyValue("elapsedMillis", TimeUnit.NANOSECONDS.toMillis(elapsed))
                .addKeyValue("limitMillis", limit.toMillis())
                .setCause(ThreadStack.of(thread, stack))
                .log(
                        (isDelivering
                                        ? event + ": the backend has returned, and the thread delivers its responses"
                                        : event)
                                + " (model '{}', version {}, instance '{}', after {} ms, limit {} ms)",
                        model.settings().name(),
                        model.settings().version(),
                        worker.name(),
                        TimeUnit.NANOSECONDS.toMillis(elapsed),
                        limit.toMillis());
        if (!isDelivering) {
            notifyBackend(worker);
        }
    }

    private static String ids(List<String> ids) {
        String shown = ids.stream()
                .limit(MAX_IDS)
                .map(id -> id.isEmpty() ? "<id_unknown>" : id)
                .collect(Collectors.joining(","));
        return ids.size() > MAX_IDS ? shown + ",..." : shown;
    }
}
