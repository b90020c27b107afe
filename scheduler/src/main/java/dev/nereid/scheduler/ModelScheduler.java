package dev.nereid.scheduler;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.Cancellation;
import dev.nereid.api.InferenceException;
import dev.nereid.api.ResponseObserver;
import dev.nereid.scheduler.admission.ModelLoad;
import dev.nereid.scheduler.batch.BatchPlanner;
import dev.nereid.scheduler.batch.EqualInputs;
import dev.nereid.scheduler.batch.ExecutionScope;
import dev.nereid.scheduler.batch.StrategyBatcher;
import dev.nereid.scheduler.instance.ExecutionWatch;
import dev.nereid.scheduler.instance.InstanceSlot;
import dev.nereid.scheduler.instance.InstanceThreads;
import dev.nereid.scheduler.instance.InstanceWorker;
import dev.nereid.scheduler.instance.ManagedInstance;
import dev.nereid.scheduler.instance.ShortExecutions;
import dev.nereid.scheduler.instance.Warmup;
import dev.nereid.scheduler.instance.WarmupSample;
import dev.nereid.scheduler.instance.WorkerGroup;
import dev.nereid.scheduler.queue.RequestQueue;
import dev.nereid.scheduler.rate.RateLimiter;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.request.ModelScope;
import dev.nereid.scheduler.request.ResponseOrder;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.scheduler.statistics.MeterReading;
import dev.nereid.scheduler.statistics.ModelMeter;
import dev.nereid.scheduler.time.Watchdog;
import dev.nereid.spi.BatchingStrategy;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import java.util.Collection;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.LongSupplier;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Schedules requests to one model version: queues them, batches them, runs its instances. Safe for use by any thread.
 *
 * <p>An instance whose backend promises short executions is run by the thread that submits a request, if the instance
 * is idle and there is a batch for it; all others, and that one when it is busy, by threads of their own. Where a rate
 * limiter gives turns to instances, threads of their own run all of them, since those may wait.
 *
 * <p>Observers are called by the thread that completes a response: that of an instance, that of a backend, or the one
 * that submits or withdraws a call, or that of the timer. A call that is withdrawn, or that comes to its deadline,
 * while it waits is never executed and is answered {@link dev.nereid.spi.ErrorCode#CANCELLED} at once; so is, with
 * {@link dev.nereid.spi.ErrorCode#UNAVAILABLE}, one that has waited for longer than the model lets it. A call that is
 * withdrawn while it is executed is answered the same when its execution ends, whatever the backend answers; its
 * deadline then matters no more.
 *
 * <p>A call that would bring more in flight than the model or its server may have is refused at once with
 * {@link dev.nereid.spi.ErrorCode#UNAVAILABLE}, and told when to try again. Calls are in flight until their responses
 * are closed and their memory was given back.
 *
 * <p>Once all calls have ended, no observer is called and no memory of the model is touched any more: {@link #close}
 * waits for that moment and closes the instances only then.
 */
public final class ModelScheduler implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(ModelScheduler.class);

    private final ModelScope model;
    private final ExecutionScope scope;
    private final RequestQueue queue;
    private final ShortExecutions executions;
    private final RateLimiter rateLimiter;
    private final LongSupplier nanoTime;
    private final RequestSubmitter submitter;
    private final Optional<BatchingStrategy> strategy;
    private final boolean blocksDevice;
    private final InstanceThreads threads;
    private final ExecutionWatch watch;
    private final Optional<Watchdog> watchdog;
    private final WorkerGroup first;
    /** The warm-up of instances that are to replace others. */
    private volatile @Nullable Warmup replacing;

    private volatile boolean warmupsEnded;
    private final AtomicBoolean closing = new AtomicBoolean();
    private final CountDownLatch closed = new CountDownLatch(1);

    /** Makes a worker for each instance; all have their seats at the queue before the first one starts. */
    private ModelScheduler(ModelPlan plan, List<ManagedInstance> instances, SchedulerEnvironment environment) {
        ModelSettings settings = plan.settings();
        BatchingPolicy policy = plan.policy();
        this.model = new ModelScope(
                settings,
                environment.memory(),
                environment.nanoTime(),
                environment.supervision().fatalErrors(),
                new ModelMeter(environment.wallClock()),
                new ModelLoad(environment.load(), plan.limits()));
        this.scope = ExecutionScope.of(model, plan.backend().clientMemory());
        this.executions = new ShortExecutions(settings, plan.backend());
        this.rateLimiter = environment.rateLimiter();
        this.nanoTime = environment.nanoTime();
        boolean batches = policy.dynamic() && settings.batches();
        BatchPlanner planner = batches
                ? new BatchPlanner(settings.maxBatchSize(), policy.preferredSizes(), policy.maxQueueDelayNanos())
                : BatchPlanner.oneByOne();
        this.strategy = plan.strategy();
        this.queue = new RequestQueue(
                planner,
                policy.priorities(),
                new EqualInputs(settings),
                nanoTime,
                environment.timer(),
                strategy.filter(rule -> batches)
                        .map(rule -> new StrategyBatcher(model, rule, planner))
                        .orElse(null));
        hold(policy, environment.schedulerDelay());
        ResponseOrder order = policy.preserveOrdering() ? new ResponseOrder() : null;
        this.submitter = new RequestSubmitter(scope, queue, order, executions, rateLimiter, environment.cache());
        this.threads = new InstanceThreads(
                "instance/" + settings.name() + "/" + settings.version() + "/", model.fatalErrors());
        Supervision supervision = environment.supervision();
        this.watch = new ExecutionWatch(model, threads, supervision.executionLimit(), supervision.loadLimit());
        this.watchdog = supervision.watchdog();
        this.blocksDevice = plan.backend().blocksDevice();
        this.first = firstGroup(instances, plan.warmup());
    }

    /** Holds the queue of a dynamic batcher until so many requests wait, once. */
    private void hold(BatchingPolicy policy, int requests) {
        if (policy.dynamic() && requests > 0) {
            LOG.atDebug().log(
                    "Delaying dynamic batcher of {} until {} queued requests...",
                    model.settings().name(),
                    requests);
            queue.hold(requests);
        }
    }

    /**
     * Lets instances take what waits, though fewer requests do than {@link SchedulerEnvironment#schedulerDelay} asks
     * for: to be called when a stop begins. Never blocks; may be called by any thread.
     */
    public void endDelay() {
        queue.endHold();
    }

    private WorkerGroup firstGroup(List<ManagedInstance> instances, List<WarmupSample> warmup) {
        try {
            return group(instances, warmup);
        } catch (RuntimeException | Error e) { // such as no memory: nobody will close this scheduler
            queue.close();
            throw e;
        }
    }

    private WorkerGroup group(List<ManagedInstance> instances, List<WarmupSample> warmup) {
        return WorkerGroup.of(scope, instances, blocksDevice, queue, executions, warmup);
    }

    /**
     * Starts a scheduler with one platform thread for each instance, named
     * {@code instance/<model>/<version>/<instance name>}.
     *
     * @param plan the model; its rule for batches is owned and later closed by the scheduler, whatever happens
     * @param instances at least one instance; owned and later closed by the scheduler, whatever happens
     * @param environment what the server around it gives
     * @return the scheduler, which takes calls at once
     * @throws InferenceException {@link dev.nereid.spi.ErrorCode#INVALID_ARGUMENT} if the rate limiter could never let
     *     an instance execute
     */
    public static ModelScheduler start(ModelPlan plan, List<InstanceSlot> instances, SchedulerEnvironment environment) {
        if (instances.isEmpty()) {
            closeStrategy(plan);
            throw new IllegalArgumentException("instances: none (expected: at least one)");
        }
        List<ManagedInstance> owned =
                instances.stream().map(ManagedInstance::new).toList();
        ModelScheduler scheduler;
        try {
            owned.forEach(instance -> instance.register(environment.rateLimiter()));
            scheduler = new ModelScheduler(plan, owned, environment);
        } catch (RuntimeException | Error e) { // such as a wrong plan: nobody else knows the instances
            owned.reversed().forEach(ManagedInstance::close);
            closeStrategy(plan);
            throw e;
        }
        try {
            scheduler.watchdog.ifPresent(dog -> dog.add(scheduler.watch));
            scheduler.threads.start(scheduler.first.workers(), scheduler.first.warmup());
            scheduler.threads.serve(scheduler.first.workers()::contains);
            if (plan.policy()
                    .dynamic()) { // scripts look for this text of the reference server, which has such a thread
                LOG.debug(
                        "Starting dynamic-batcher thread for {} at nice 0...",
                        plan.settings().name());
            }
            return scheduler;
        } catch (RuntimeException | Error e) { // such as no memory for another thread
            scheduler.close();
            throw e;
        }
    }

    /**
     * Waits until every instance has executed its warm-up; each takes requests from then on. Blocks meanwhile: to be
     * called on a control thread. If the scheduler is closed before, the warm-up ends early, and what waits is refused.
     *
     * @throws InferenceException {@link dev.nereid.spi.ErrorCode#INVALID_ARGUMENT} with the name of a sample and all
     *     its errors if one failed: no instance takes a request then, and the scheduler is to be closed
     * @throws InterruptedException if the thread is interrupted meanwhile; the scheduler is to be closed
     */
    public void awaitWarm() throws InterruptedException {
        first.warmup().await();
    }

    /**
     * Exchanges instances while the others serve. The new ones are warmed up before they take requests; then the old
     * ones take no more. Blocks until then: to be called on a control thread, and not by two at once. The old ones end
     * what they have, and are closed by their own threads when their last response is closed; {@link #close} waits for
     * that.
     *
     * @param added the new instances; owned and later closed by the scheduler, whatever happens
     * @param removed instances of this scheduler that are to go; with {@code added} empty, some must be left
     * @param warmup what each new instance executes before it takes its first request
     * @throws InferenceException as {@link #awaitWarm} if a new instance fails; then all new ones are closed again, and
     *     the old ones go on
     * @throws InterruptedException if the thread is interrupted during the warm-up; as if that had failed
     */
    public void replace(List<InstanceSlot> added, Collection<ModelInstance> removed, List<WarmupSample> warmup)
            throws InterruptedException {
        List<ManagedInstance> owned = added.stream().map(ManagedInstance::new).toList();
        WorkerGroup group;
        try {
            owned.forEach(instance -> instance.register(rateLimiter));
            group = group(owned, warmup);
        } catch (RuntimeException | Error e) { // such as no memory: nobody else knows the instances
            owned.reversed().forEach(ManagedInstance::close);
            throw e;
        }
        replacing = group.warmup();
        try {
            if (warmupsEnded) {
                group.warmup().abandon();
            }
            group.warmUp(threads);
        } finally {
            replacing = null;
        }
        Predicate<InstanceWorker> old = worker -> removed.stream().anyMatch(worker::has);
        threads.serve(old.negate());
        threads.retire(old);
    }

    /**
     * Ends the warm-ups that are under way, and those that are begun later, as soon as what is executed at this moment
     * is over: {@link #awaitWarm} and {@link #replace} fail then. Does nothing where there is no warm-up. Never blocks.
     */
    public void endWarmups() {
        warmupsEnded = true;
        first.warmup().abandon();
        Warmup later = replacing;
        if (later != null) {
            later.abandon();
        }
    }

    /**
     * Answers a call that comes at this moment from the cache of responses, queues it, or executes it at once. Never
     * blocks, and tells every outcome to the observer.
     *
     * @param call a call that was checked against the model; its memory is the scheduler's from now on
     * @param observer who is told the responses
     * @return the handle by which the caller withdraws the call
     */
    public Cancellation submit(CheckedRequest call, ResponseObserver observer) {
        return submit(call, observer, nanoTime.getAsLong(), false);
    }

    /**
     * Answers a call from the cache of responses, queues it, or executes it at once. Never blocks, and tells every
     * outcome to the observer.
     *
     * @param call a call that was checked against the model; its memory is the scheduler's from now on
     * @param observer who is told the responses
     * @param arrivedNanos when the server was given the call, on the scale of {@link System#nanoTime()}
     * @param heavy whether the observer takes long for its answer, so that no thread that submits must tell it
     * @return the handle by which the caller withdraws the call
     */
    public Cancellation submit(CheckedRequest call, ResponseObserver observer, long arrivedNanos, boolean heavy) {
        requireNonNull(call, "call");
        requireNonNull(observer, "observer");
        return submitter.submit(call, observer, arrivedNanos, heavy);
    }

    /**
     * Says whether calls are answered from a cache of responses where it has them.
     *
     * @return {@code true} if the model has one
     */
    public boolean isCached() {
        return submitter.isCached();
    }

    /**
     * Tells what became of the calls.
     *
     * @return the figures at this moment
     */
    public MeterReading statistics() {
        return model.meter().read();
    }

    /**
     * Says whether the model can serve. Never blocks.
     *
     * @return {@code true} while calls are taken, every instance lives and says that it is ready, and the executions of
     *     some instance are not overdue
     */
    public boolean isReady() {
        return queue.isOpen() && !threads.areAllOverdue() && threads.areReady();
    }

    /**
     * Says whether calls are taken: until the end, unless no instance is left.
     *
     * @return whether a call can be executed
     */
    public boolean isServing() {
        return queue.isOpen();
    }

    /**
     * Describes instances that are overdue or gone.
     *
     * @return the description; empty if there are none
     */
    public String problems() {
        List<InstanceWorker> serving = threads.servingWorkers();
        String gone = names(serving, InstanceWorker::isGone);
        if (!gone.isEmpty()) {
            return "instances that are gone: " + gone + " (load the model again)";
        }
        String overdue = names(serving, InstanceWorker::isOverdue);
        return overdue.isEmpty()
                ? ""
                : "instances whose executions take longer than " + watch.limit().toSeconds() + " s: " + overdue;
    }

    private static String names(List<InstanceWorker> workers, Predicate<InstanceWorker> which) {
        return workers.stream().filter(which).map(InstanceWorker::name).collect(Collectors.joining(", "));
    }

    /**
     * Counts the executions that are overdue at this moment.
     *
     * @return the number of instances whose executions were reported and go on
     */
    public long overdue() {
        return threads.workers().stream().filter(InstanceWorker::isOverdue).count();
    }

    /**
     * Counts the executions that were overdue since the start.
     *
     * @return the number of executions that were reported
     */
    public long overdueTotal() {
        return watch.total();
    }

    /**
     * Finds the instance whose execution a thread is in.
     *
     * @param thread any thread, also one that submits calls
     * @return the name of the instance; empty if the thread executes nothing of this model
     */
    public Optional<String> instanceOn(Thread thread) {
        return threads.workers().stream()
                .filter(worker -> worker.executesOn(thread))
                .map(InstanceWorker::name)
                .findFirst();
    }

    /**
     * Gives up the execution that a thread is in, if it is in one: the thread will not return, since it ends the
     * process. Its calls are answered {@link dev.nereid.spi.ErrorCode#UNAVAILABLE}, nobody waits for it any more, and
     * its instance is never closed.
     *
     * @param thread any thread, also one that submits calls
     */
    public void loseExecutionOn(Thread thread) {
        threads.workers().stream().filter(worker -> worker.executesOn(thread)).forEach(InstanceWorker::lose);
    }

    /**
     * Counts the calls that were taken and did not end: those that wait, that are executed, or whose responses are not
     * all closed.
     *
     * @return the number at this moment
     */
    public int inFlight() {
        return model.inFlight().count();
    }

    /**
     * Counts the calls that wait for their execution.
     *
     * @return the number at this moment
     */
    public int waiting() {
        return queue.waiting();
    }

    /**
     * Stops taking calls (later ones are answered {@link dev.nereid.spi.ErrorCode#UNAVAILABLE}), executes what is
     * queued, waits until every call has ended and every response is closed, and then has each instance closed by its
     * own thread. Blocks meanwhile: to be called on a control thread, never by a backend or an observer. Later calls
     * wait for the first and do nothing.
     */
    @Override
    public void close() {
        queue.stop();
        if (closing.compareAndSet(false, true)) {
            endWarmups();
            threads.awaitEnd();
            model.inFlight().awaitNone();
            watchdog.ifPresent(dog -> dog.remove(watch));
            queue.close();
            threads.close();
            strategy.ifPresent(ModelScheduler::closeQuietly);
            closed.countDown();
        } else {
            uninterruptibly(closed);
        }
    }

    /**
     * Answers every call that is not answered, since nobody can wait for them any more; takes no more calls. What waits
     * is refused with the text of the stop, and counted as rejected. What is executed is withdrawn from its backend, as
     * by its client, and then told {@link dev.nereid.spi.ErrorCode#UNAVAILABLE}, whether its backend heeds that or not;
     * its memory stays its backend's until that is done with it. What reaches an instance later is not executed.
     *
     * <p>Does not wait for anything but what backends do when they are told, and observers. {@link #close}, running on
     * another thread or called later, waits for the backends as ever.
     */
    public void abandon() {
        queue.stop();
        model.detached().abandon();
        queue.drain().forEach(ScheduledRequest::abandon);
        threads.abandon();
        model.detached().abandonAll();
    }

    /** Closes the rule of a plan; there may be no plan, where the caller gave none. */
    private static void closeStrategy(@Nullable ModelPlan plan) {
        if (plan != null) {
            plan.strategy().ifPresent(ModelScheduler::closeQuietly);
        }
    }

    private static void closeQuietly(BatchingStrategy strategy) {
        try {
            strategy.close();
        } catch (Throwable e) {
            LOG.atError().setCause(e).log("close of batching strategy failed");
        }
    }

    private static void uninterruptibly(CountDownLatch latch) {
        boolean interrupted = false;
        while (latch.getCount() > 0) {
            try {
                latch.await();
            } catch (InterruptedException e) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
