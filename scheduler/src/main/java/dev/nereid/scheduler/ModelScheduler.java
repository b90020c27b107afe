package dev.nereid.scheduler;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.Cancellation;
import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelCatalog.Readiness;
import dev.nereid.api.RequestOptions;
import dev.nereid.api.ResponseObserver;
import dev.nereid.api.call.Hold;
import dev.nereid.api.statistics.FailureReason;
import dev.nereid.scheduler.admission.RequestAdmission;
import dev.nereid.scheduler.batch.BatchPlanner;
import dev.nereid.scheduler.batch.EqualInputs;
import dev.nereid.scheduler.batch.ExecutionBatch;
import dev.nereid.scheduler.batch.ExecutionScope;
import dev.nereid.scheduler.batch.StrategyBatcher;
import dev.nereid.scheduler.client.RunningExecution;
import dev.nereid.scheduler.client.WaitingCalls;
import dev.nereid.scheduler.instance.DirectExecutionPolicy;
import dev.nereid.scheduler.instance.ExecutionTraits;
import dev.nereid.scheduler.instance.ExecutionWatch;
import dev.nereid.scheduler.instance.Instance;
import dev.nereid.scheduler.instance.InstanceThreads;
import dev.nereid.scheduler.instance.InstanceWorker;
import dev.nereid.scheduler.instance.ModelReadiness;
import dev.nereid.scheduler.instance.Warmup;
import dev.nereid.scheduler.instance.WorkerGroup;
import dev.nereid.scheduler.memory.OutputIntegrity;
import dev.nereid.scheduler.queue.ModelQueue;
import dev.nereid.scheduler.queue.RequestQueue;
import dev.nereid.scheduler.queue.SequenceUse;
import dev.nereid.scheduler.rate.ExecutionLimiter;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.request.ModelScope;
import dev.nereid.scheduler.request.ResponseOrder;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.scheduler.sequence.SequencePlan;
import dev.nereid.scheduler.sequence.SequenceQueue;
import dev.nereid.scheduler.statistics.MeterReading;
import dev.nereid.scheduler.statistics.ModelMeter;
import dev.nereid.scheduler.time.Watchdog;
import dev.nereid.spi.BatchingStrategy;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Sequence;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
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
 * <p><b>Direct execution.</b> If the backend declares its executions short, the submitting thread runs an idle instance
 * when there is a batch for it. Otherwise each instance is run by its own thread; always so under a rate limiter, since
 * instances may have to wait for permits.
 *
 * <p><b>Threads.</b> The thread of an instance starts with the first batch that needs it, and ends when there was no work
 * for it for a minute, unless the backend needs it longer. If it cannot be started, other
 * instances execute the waiting requests; without any, these complete with
 * {@link dev.nereid.spi.ErrorCode#UNAVAILABLE}, and the next request tries again. That is no fatal error: the process
 * serves as before.
 *
 * <p><b>Completion.</b> Observers are called by the thread that completes a response: an instance thread, a backend
 * thread, the timer thread, or a thread that submits or cancels a request. A waiting request that is cancelled, or
 * reaches its deadline, is never executed and completes with {@link dev.nereid.spi.ErrorCode#CANCELLED} at once; if its
 * queue timeout expires, it completes with {@link dev.nereid.spi.ErrorCode#UNAVAILABLE}. A request that is cancelled
 * during its execution completes as cancelled when the execution ends, however the backend responds. Deadlines do not
 * apply to a request in execution.
 *
 * <p><b>Load.</b> A request that would exceed the load limits of the model or its server is refused at once with
 * {@link dev.nereid.spi.ErrorCode#UNAVAILABLE} and a time to retry. Requests are in flight until their responses are
 * closed and their memory is released.
 *
 * <p><b>Shutdown.</b> Once no request is in flight, no observer is called and no memory of the model is accessed any
 * more: {@link #close} waits for that, and then closes the instances.
 */
public final class ModelScheduler implements Scheduler, InstanceControl {
    private static final Logger LOG = LoggerFactory.getLogger(ModelScheduler.class);

    private final ModelScope model;
    private final ExecutionScope scope;
    private final ModelQueue queue;
    private final DirectExecutionPolicy executions;
    private final ExecutionLimiter rateLimiter;
    private final LongSupplier nanoTime;
    private final RequestSubmitter submitter;
    private final Optional<BatchingStrategy> strategy;
    private final ExecutionTraits traits;
    private final InstanceThreads threads;
    private final ModelReadiness readiness;
    private final ExecutionWatch watch;
    private final OutputIntegrity integrity;
    private final Optional<Watchdog> watchdog;
    private final WorkerGroup first;
    /** The warm-up of replacing instances; {@code null} if none is in progress. */
    private volatile @Nullable Warmup replacing;

    private volatile boolean warmupsEnded;
    private final AtomicBoolean closing = new AtomicBoolean();
    private final CountDownLatch closed = new CountDownLatch(1);

    /** Creates a worker for each instance. All are registered with the queue before the first one starts. */
    private ModelScheduler(
            ModelPlan plan, List<Instance> instances, SchedulerEnvironment environment, ModelMeter meter) {
        ModelSettings settings = plan.settings();
        BatchingPolicy policy = plan.policy();
        this.model = new ModelScope(
                settings,
                environment.memory(),
                environment.clocks().nanoTime(),
                environment.supervision().fatalErrors(),
                meter,
                new RequestAdmission(environment.admission(), plan.limits()),
                environment.refusals());
        this.integrity = new OutputIntegrity(
                settings,
                () -> plan.backend().callbacks().stacks(settings),
                environment.supervision().outputCheckInterval());
        ExecutionScope lenient = ExecutionScope.of(
                        model, plan.backend().accepted(), plan.backend().callbacks())
                .with(integrity)
                .with(plan.backend().forgotten())
                .withIterative(plan.iterative());
        this.scope = environment.supervision().strictOutputs() ? lenient.withStrictOutputs() : lenient;
        this.executions = new DirectExecutionPolicy(settings, plan.backend());
        this.rateLimiter = environment.rateLimiter();
        this.nanoTime = environment.clocks().nanoTime();
        boolean batches = policy.dynamic() && settings.batches();
        BatchPlanner planner = batches
                ? new BatchPlanner(settings.maxBatchSize(), policy.preferredSizes(), policy.maxQueueDelayNanos())
                : BatchPlanner.oneByOne();
        this.strategy = plan.strategy();
        StrategyBatcher batcher = strategy.filter(_ -> batches)
                .map(batching -> new StrategyBatcher(model, batching, planner))
                .orElse(null);
        this.queue = plan.sequences()
                .<ModelQueue>map(sequences -> queue(sequences, environment))
                .orElseGet(() -> queue(plan, planner, batcher, environment));
        boolean ordered = policy.preserveOrdering()
                || plan.sequences().filter(SequencePlan::preserveOrdering).isPresent();
        // Requests of iterative sequences end when their backend says so.
        ResponseOrder order = ordered && !plan.iterative() ? new ResponseOrder() : null;
        this.submitter = new RequestSubmitter(
                scope,
                queue,
                order,
                executions,
                rateLimiter,
                environment.cache(),
                environment.calls(),
                new Instances(order != null, plan.sequences().isPresent()));
        this.threads = new InstanceThreads(
                "instance/" + settings.name() + "/" + settings.version() + "/",
                model.fatalErrors(),
                start -> environment.clocks().timer().newTimeout(start).scheduleAtLatest(nanoTime.getAsLong()));
        this.readiness =
                new ModelReadiness(threads, nanoTime, environment.clocks().timer(), model.fatalErrors());
        Supervision supervision = environment.supervision();
        this.watch = new ExecutionWatch(
                model, threads, plan.backend().callbacks(), supervision.executionLimit(), supervision.loadLimit());
        this.watchdog = supervision.watchdog();
        // Sequences belong to one instance, so that instances do not take turns on a thread.
        this.traits = plan.sequences().isPresent() ? plan.backend().withOwnThreads() : plan.backend();
        this.first = firstGroup(instances, plan.warmup());
    }

    private SequenceQueue queue(SequencePlan plan, SchedulerEnvironment environment) {
        SequenceQueue sequences =
                new SequenceQueue(model, plan, environment.clocks().timer());
        SchedulerDelay delay = environment.schedulerDelay();
        sequences.hold(delay.requests(), delay.backlogged());
        return sequences;
    }

    private static RequestQueue queue(
            ModelPlan plan, BatchPlanner planner, @Nullable StrategyBatcher batcher, SchedulerEnvironment environment) {
        RequestQueue queue = new RequestQueue(
                planner,
                plan.policy().priorities(),
                new EqualInputs(plan.settings()),
                environment.clocks().nanoTime(),
                environment.clocks().timer(),
                batcher);
        if (plan.iterative()) {
            queue.setRescheduledRequests();
        }
        hold(queue, plan, environment.schedulerDelay().requests());
        return queue;
    }

    /** Holds the queue of a dynamic batcher until a number of requests wait, once. */
    private static void hold(RequestQueue queue, ModelPlan plan, int requests) {
        if (plan.policy().dynamic() && requests > 0) {
            LOG.atDebug().log(
                    "Delaying dynamic batcher of {} until {} queued requests...",
                    plan.settings().name(),
                    requests);
            queue.hold(requests);
        }
    }

    @Override
    public void endDelay() {
        queue.endHold();
    }

    private WorkerGroup firstGroup(List<Instance> instances, List<Warmup.Sample> warmup) {
        try {
            return group(instances, warmup);
        } catch (RuntimeException e) { // this scheduler is never closed
            queue.close();
            throw e;
        }
    }

    private WorkerGroup group(List<Instance> instances, List<Warmup.Sample> warmup) {
        return WorkerGroup.of(scope, instances, traits, queue::source, executions, warmup);
    }

    /** Starts as {@link #start(ModelPlan, List, SchedulerEnvironment, ModelMeter)} does, with new statistics. */
    public static ModelScheduler start(ModelPlan plan, List<Instance> instances, SchedulerEnvironment environment) {
        return start(
                plan,
                instances,
                environment,
                new ModelMeter(environment.clocks().wallClock()));
    }

    /**
     * Starts a scheduler, which accepts requests at once. Each instance has one platform thread, named
     * {@code instance/<model>/<version>/<instance name>}; it starts with the first batch that is not executed directly,
     * or at once if there is a warm-up.
     *
     * @param plan the model; its batching strategy is owned and later closed by the scheduler, even if this throws
     * @param instances at least one instance; owned and later closed by the scheduler, even if this throws
     * @param meter the statistics of the version, which may outlive the scheduler
     * @throws InferenceException {@link dev.nereid.spi.ErrorCode#INVALID_ARGUMENT} if the rate limiter refuses an
     *     instance
     */
    public static ModelScheduler start(
            ModelPlan plan, List<Instance> instances, SchedulerEnvironment environment, ModelMeter meter) {
        if (instances.isEmpty()) {
            closeStrategy(plan);
            throw new IllegalArgumentException("instances: none (expected: at least one)");
        }
        ModelScheduler scheduler;
        try {
            instances.forEach(instance -> instance.register(environment.rateLimiter()));
            scheduler = new ModelScheduler(plan, instances, environment, meter);
        } catch (RuntimeException e) { // such as a wrong plan: no worker closes the instances
            instances.reversed().forEach(Instance::close);
            closeStrategy(plan);
            throw e;
        }
        try {
            scheduler.watchdog.ifPresent(scheduler::watch);
            scheduler.threads.start(scheduler.first.workers(), scheduler.first.warmup());
            scheduler.threads.serve(scheduler.first.workers()::contains);
            if (plan.policy()
                    .dynamic()) { // scripts search for this text of the reference server, which has such a thread
                LOG.debug(
                        "Starting dynamic-batcher thread for {} at nice 0...",
                        plan.settings().name());
            }
            return scheduler;
        } catch (RuntimeException e) {
            scheduler.close();
            throw e;
        }
    }

    private void watch(Watchdog dog) {
        dog.add(watch);
        if (!traits.lastingThreads()) {
            dog.add(threads);
        }
    }

    @Override
    public void awaitWarm() throws InterruptedException {
        first.warmup().await();
    }

    @Override
    public void replace(List<Instance> added, Collection<Instance> removed, List<Warmup.Sample> warmup)
            throws InterruptedException {
        WorkerGroup group;
        try {
            added.forEach(instance -> instance.register(rateLimiter));
            group = group(added, warmup);
        } catch (RuntimeException e) { // no worker closes the instances
            added.reversed().forEach(Instance::close);
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
        Predicate<InstanceWorker> old = anyOf(removed);
        threads.serve(old.negate());
        threads.retire(old);
    }

    @Override
    public boolean awaitClosed(Collection<Instance> removed, long nanos) {
        return threads.awaitRetired(anyOf(removed), nanos);
    }

    /** Returns whether a worker runs one of some instances. */
    private static Predicate<InstanceWorker> anyOf(Collection<Instance> instances) {
        return worker -> instances.stream().anyMatch(worker::has);
    }

    @Override
    public void endWarmups() {
        warmupsEnded = true;
        threads.endWaits();
        first.warmup().abandon();
        Warmup later = replacing;
        if (later != null) {
            later.abandon();
        }
    }

    @Override
    public Cancellation submit(CheckedRequest request, ResponseObserver observer) {
        requireNonNull(request, "request");
        requireNonNull(observer, "observer");
        return submitter.submit(request, observer);
    }

    /** Returns the policy for direct executions of the model. For tests, which end its trial. */
    DirectExecutionPolicy directExecutions() {
        return executions;
    }

    @Override
    public Optional<InstanceControl> instances() {
        return Optional.of(this);
    }

    @Override
    public Object source() {
        return model.source();
    }

    @Override
    public long openResponses() {
        return model.drain().openResponses();
    }

    @Override
    public boolean isCached() {
        return submitter.isCached();
    }

    @Override
    public MeterReading statistics() {
        return model.meter().read();
    }

    @Override
    public boolean isReady() {
        return mayServe() && readiness.isReady();
    }

    @Override
    public CompletionStage<Readiness> checkReady() {
        return mayServe() ? readiness.check() : CompletableFuture.completedStage(Readiness.NOT_READY);
    }

    /** Returns {@code false} if the server knows a reason why the model cannot serve. */
    private boolean mayServe() {
        return queue.isOpen() && !threads.areAllOverdue() && !threads.areAllOutOfMemory() && integrity.total() == 0;
    }

    @Override
    public boolean isServing() {
        return queue.isOpen();
    }

    @Override
    public String problems() {
        List<InstanceWorker> serving = threads.servingWorkers();
        String gone = names(serving, InstanceWorker::isGone);
        if (!gone.isEmpty()) {
            return "instances that are gone: " + gone + " (load the model again)";
        }
        String overdue = names(serving, InstanceWorker::isExecutionOverdue);
        String limit = " take longer than " + watch.limit().toSeconds() + " s: ";
        if (!overdue.isEmpty()) {
            return "instances whose executions" + limit + overdue;
        }
        if (watch.deferred() > 0) {
            return "requests whose deferred executions" + limit + watch.deferred();
        }
        String outOfMemory = names(serving, InstanceWorker::isOutOfMemory);
        if (!outOfMemory.isEmpty()) {
            return "instances whose last executions failed with OutOfMemoryError: " + outOfMemory;
        }
        return integrity.total() == 0
                ? readiness.problems()
                : "output '" + integrity.changedOutput()
                        + "' was changed after it was passed to the server (replace the plugin, or load the model"
                        + " again)";
    }

    private static String names(List<InstanceWorker> workers, Predicate<InstanceWorker> which) {
        return workers.stream().filter(which).map(InstanceWorker::name).collect(Collectors.joining(", "));
    }

    @Override
    public long overdue() {
        return threads.workers().stream().mapToLong(InstanceWorker::overdue).sum();
    }

    @Override
    public long overdueTotal() {
        return watch.total();
    }

    @Override
    public long outOfMemoryTotal() {
        return threads.workers().stream()
                .mapToLong(InstanceWorker::outOfMemoryTotal)
                .sum();
    }

    @Override
    public long changedOutputsTotal() {
        return integrity.total();
    }

    @Override
    public Optional<SequenceUse> sequenceUse() {
        return queue.sequenceUse();
    }

    @Override
    public Optional<String> instanceOn(Thread thread) {
        return threads.workers().stream()
                .filter(worker -> worker.executesOn(thread))
                .map(InstanceWorker::name)
                .findFirst();
    }

    @Override
    public Map<String, Thread> executing() {
        Map<String, Thread> all = new TreeMap<>();
        for (InstanceWorker worker : threads.workers()) {
            worker.executing().ifPresent(thread -> all.put(worker.name(), thread));
        }
        return all;
    }

    @Override
    public Optional<RunningExecution> executionOn(Thread thread) {
        return threads.workers().stream()
                .flatMap(worker -> worker.executionOn(thread).stream())
                .findFirst();
    }

    @Override
    public void loseExecutionOn(Thread thread) {
        threads.workers().stream().filter(worker -> worker.executesOn(thread)).forEach(InstanceWorker::lose);
    }

    @Override
    public int openSenders() {
        return model.detached().openSenders();
    }

    @Override
    public int forsakenSenders() {
        return model.detached().forsaken();
    }

    @Override
    public long openLeases() {
        return scope.handles().openLeases();
    }

    @Override
    public int inFlight() {
        return model.drain().count();
    }

    @Override
    public int waiting() {
        return queue.waiting();
    }

    @Override
    public boolean isWorking() {
        return waiting() > 0 || !executing().isEmpty() || model.detached().areExecuted();
    }

    @Override
    public boolean isIdle() {
        return inFlight() == 0 && !queue.hasSequences();
    }

    @Override
    public boolean hasSequence(Sequence.Id id) {
        return queue.hasSequence(id);
    }

    @Override
    public void replaceSequence(Sequence.Id id) {
        queue.replaceSequence(id);
    }

    @Override
    public void cancelled(RequestOptions options, long arrivedNanos) {
        model.meter().failed(FailureReason.CANCELED, nanoTime.getAsLong() - arrivedNanos);
        cancelSequence(options);
    }

    @Override
    public void cancelSequence(RequestOptions options) {
        options.sequence().ifPresent(sequence -> queue.cancelSequence(sequence.id()));
    }

    @Override
    public boolean whenSequencesEnd(Runnable action) {
        return queue.whenSequencesEnd(action);
    }

    /** The instances for which requests of other models wait. */
    private final class Instances implements WaitingCalls.Instances {
        /** {@code true} if a response waits for the responses of earlier requests. */
        private final boolean ordered;

        /** {@code true} if a sequence belongs to an instance, which the server selects. */
        private final boolean sequences;

        Instances(boolean ordered, boolean sequences) {
            this.ordered = ordered;
            this.sequences = sequences;
        }

        @Override
        public List<WaitingCalls.InstanceUse> uses() {
            return threads.servingWorkers().stream()
                    .filter(worker -> !worker.isRetired() && !worker.isGone())
                    .map(InstanceWorker::use)
                    .toList();
        }

        @Override
        public boolean blocksAll(Hold hold) {
            return (ordered || (sequences && hold.kind() != Hold.Kind.REQUEST))
                    && hold.execution() instanceof ExecutionBatch batch
                    && batch.isOf(model);
        }
    }

    @Override
    public void expectUnload() {
        queue.leave();
    }

    @Override
    public void drain() {
        queue.stop();
    }

    @Override
    public void close() {
        drain();
        if (closing.compareAndSet(false, true)) {
            endWarmups();
            model.drain().awaitUninterruptibly(); // until then a waiting request may need one thread more
            threads.awaitEnd();
            watchdog.ifPresent(dog -> {
                dog.remove(watch);
                dog.remove(threads);
            });
            queue.close();
            threads.close();
            scope.handles().close();
            strategy.ifPresent(ModelScheduler::closeQuietly);
            closed.countDown();
        } else {
            uninterruptibly(closed);
        }
    }

    @Override
    public boolean awaitIdle(long nanos) throws InterruptedException {
        return model.drain().await(nanos);
    }

    @Override
    public void abandon() {
        drain();
        model.detached().abandon();
        queue.drain().forEach(ScheduledRequest::abandon);
        threads.abandon();
        model.detached().abandonAll();
    }

    /** Closes the batching strategy of a plan. The plan is {@code null} if the caller passed none. */
    private static void closeStrategy(@Nullable ModelPlan plan) {
        if (plan != null) {
            plan.strategy().ifPresent(ModelScheduler::closeQuietly);
        }
    }

    private static void closeQuietly(BatchingStrategy strategy) {
        try {
            strategy.close();
        } catch (Throwable e) { // of the batching strategy
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
