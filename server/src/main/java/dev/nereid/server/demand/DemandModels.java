package dev.nereid.server.demand;

import dev.nereid.api.Cancellation;
import dev.nereid.api.InferRequest;
import dev.nereid.api.InferenceException;
import dev.nereid.api.ResponseObserver;
import dev.nereid.api.statistics.DemandStatistics;
import dev.nereid.repository.ModelKey;
import dev.nereid.scheduler.SchedulerEnvironment;
import dev.nereid.scheduler.admission.AdmissionLimits;
import dev.nereid.scheduler.admission.RequestAdmission;
import dev.nereid.scheduler.time.Timeout;
import dev.nereid.scheduler.time.Timer;
import dev.nereid.server.lifecycle.Generation;
import dev.nereid.server.lifecycle.LiveGenerations;
import dev.nereid.server.lifecycle.OnDemandModel;
import dev.nereid.server.options.DemandOptions;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.function.LongSupplier;

/**
 * Loads models for the requests that need them, and evicts others, within a memory budget. Safe for use by any thread;
 * never blocks.
 *
 * <p>A request for a model that is not loaded waits here, and is submitted when the model is loaded. All requests for a
 * model cause one load. They are bounded in number, in bytes and in time.
 */
public final class DemandModels implements LiveGenerations.Listener, AutoCloseable {
    private static final long NANOS_PER_MICRO = 1_000;

    private final DemandOptions options;
    private final ModelActions actions;
    private final MemoryPlanner planner;
    private final DecisionExecutor loads;
    private final LoadBackOff backOff;
    private final PendingLoads queues;
    private final RequestAdmission admission;
    private final LongSupplier nanoTime;
    private final Timer timer;
    private volatile boolean ended;

    /**
     * Creates the demand of a server.
     *
     * @param options budget and bounds
     * @param actions loads and evicts
     * @param environment clock, timer and load of the server
     * @param executor runs decisions, and notifies observers, on other threads
     */
    public DemandModels(
            DemandOptions options, ModelActions actions, SchedulerEnvironment environment, Executor executor) {
        this.options = options;
        this.actions = actions;
        nanoTime = environment.clocks().nanoTime();
        timer = environment.clocks().timer();
        planner = new MemoryPlanner(budget());
        backOff = new LoadBackOff(nanoTime);
        loads = new DecisionExecutor(planner, actions, backOff, executor, nanoTime, timer);
        queues = new PendingLoads(actions::group, this::begin, this::release);
        admission = new RequestAdmission(
                environment.admission(), new AdmissionLimits(options.maxWaiting(), options.maxWaitingBytes()));
    }

    private long budget() {
        return options.memoryBudget() == 0 ? Long.MAX_VALUE : options.memoryBudget();
    }

    /**
     * Creates the error of a request to a model that was unloaded again before the request was queued.
     *
     * @param model the model's key
     * @return a failure of kind {@link dev.nereid.spi.ErrorCode#UNAVAILABLE}
     */
    public static InferenceException gone(String model) {
        return DemandErrors.gone(model);
    }

    /**
     * Queues a request until its model is loaded. The wait ends at the deadline of the request, when its queue timeout
     * expires, and after the longest wait of the options.
     *
     * @param request the request; its memory belongs to this object from now on
     * @param arrivedNanos when the server received it
     * @param submission takes the request when the model is loaded
     * @return the handle by which the caller cancels the request
     */
    public Cancellation await(
            String key, InferRequest request, ResponseObserver observer, long arrivedNanos, Submission submission) {
        Optional<InferenceException> refusal = ended
                ? Optional.of(DemandErrors.stopped())
                : backOff.refusal(key).or(() -> admit(key, request));
        if (refusal.isPresent()) {
            submission.refuse(request, observer, refusal.get());
            return Cancellation.NONE;
        }
        LoadWaiter waiting = new LoadWaiter(
                request,
                observer,
                arrivedNanos,
                submission,
                left -> queues.remove(key, left),
                removed -> admission.leave(removed.byteSize()));
        long deadline = deadline(request, arrivedNanos);
        Timeout timeout = timer.newTimeout(() -> expire(key, waiting, arrivedNanos));
        queues.add(key, waiting);
        timeout.scheduleAtLatest(deadline);
        waiting.endWith(timeout);
        return waiting;
    }

    private Optional<InferenceException> admit(String key, InferRequest request) {
        return admission.enter(LoadWaiter.byteSize(request)) == RequestAdmission.Verdict.ADMITTED
                ? Optional.empty()
                : Optional.of(DemandErrors.tooManyWaiting(key));
    }

    private long deadline(InferRequest request, long arrivedNanos) {
        long wait = options.maxWait().toNanos();
        long timeout = request.options().timeoutMicros(); // unsigned
        if (timeout > 0 && timeout < wait / NANOS_PER_MICRO) {
            wait = timeout * NANOS_PER_MICRO;
        }
        if (request.options().deadlineNanos().isPresent()) {
            wait = Math.min(wait, request.options().deadlineNanos().getAsLong() - arrivedNanos);
        }
        return arrivedNanos + wait;
    }

    private void expire(String key, LoadWaiter waiting, long arrivedNanos) {
        long now = nanoTime.getAsLong();
        if (waiting.isOverdue(now)) { // its client waits no more, as for a request in a queue
            waiting.cancel();
            return;
        }
        Duration waited = Duration.ofNanos(now - arrivedNanos);
        waiting.refuse(DemandErrors.timedOut(key, waited, planner.ask(Planning::taken), budget()));
    }

    /**
     * Returns whether requests wait for a model, or are being submitted. Later ones of a sequence have to follow them.
     *
     * @param model the model's key
     * @return whether a request of a sequence would overtake others
     */
    public boolean isWaiting(String model) {
        return queues.isWaiting(model);
    }

    /**
     * Loads several models, all of them or none, and keeps them loaded. Acquisitions wait for memory without holding
     * any, so that two of them cannot block each other.
     *
     * @param models the keys of the models, each once
     * @return completed when all are loaded, with an action that ends the hold, to be called once; fails with {@link
     *     InferenceException} if one cannot be loaded. A caller that {@linkplain CompletableFuture#cancel cancels} it
     *     waits no more
     */
    public CompletableFuture<Runnable> acquireAll(List<String> models) {
        CompletableFuture<Runnable> outcome = new CompletableFuture<>();
        Optional<InferenceException> refusal = ended
                ? Optional.of(DemandErrors.stopped())
                : models.stream()
                        .flatMap(model -> backOff.refusal(model).stream())
                        .findFirst();
        if (refusal.isPresent()) {
            outcome.completeExceptionally(refusal.get());
            return outcome;
        }
        Acquisition acquisition = new Acquisition(models, (held, failure) -> {
            if (failure != null) {
                outcome.completeExceptionally(failure);
            } else if (!outcome.complete(() -> release(held))) { // it was cancelled meanwhile
                release(held);
            }
        });
        CompletableFuture<Runnable> _ = outcome.whenComplete((_, _) -> {
            if (outcome.isCancelled()) {
                release(acquisition);
            }
        });
        begin(acquisition);
        return outcome;
    }

    /**
     * Loads several models as {@link #acquireAll} does, for a request that waits no longer than the options allow.
     *
     * @param models the keys of the models, each once, at least one
     * @return as there; fails after the longest wait too
     */
    public CompletableFuture<Runnable> acquireForRequest(List<String> models) {
        CompletableFuture<Runnable> acquired = acquireAll(models);
        if (acquired.isDone()) {
            return acquired;
        }
        CompletableFuture<Runnable> bounded = new CompletableFuture<>();
        long began = nanoTime.getAsLong();
        Timeout timeout = timer.newTimeout(() -> bounded.completeExceptionally(DemandErrors.timedOut(
                models.getFirst(),
                Duration.ofNanos(nanoTime.getAsLong() - began),
                planner.ask(Planning::taken),
                budget())));
        CompletableFuture<Void> _ = acquired.handle((hold, failure) -> {
            if (failure != null) {
                bounded.completeExceptionally(failure);
            } else if (!bounded.complete(hold)) { // its receiver waits no more
                hold.run();
            }
            return null;
        });
        CompletableFuture<Void> _ = bounded.handle((_, _) -> {
            timeout.close();
            acquired.cancel(false); // unless it is complete
            return null;
        });
        timeout.scheduleAtLatest(began + options.maxWait().toNanos());
        return bounded;
    }

    /**
     * Loads the model with a key, also if its last load has just failed, and keeps it loaded as {@link #acquireAll}
     * does.
     */
    public CompletionStage<Runnable> hold(String model) {
        backOff.clear(model);
        return acquireAll(actions.group(model));
    }

    private void begin(Acquisition acquisition) {
        planner.report(planning -> planning.acquire(acquisition));
        loads.advance();
    }

    private void release(Acquisition acquisition) {
        planner.report(planning -> planning.release(acquisition));
        loads.advance();
    }

    /** Records the memory of a model, and whether it is pinned, before requests find the model. */
    public void described(OnDemandModel model) {
        expect(model.key(), model.byteSize(), model.isPinned());
    }

    void expect(String model, long bytes, boolean isPinned) {
        planner.report(planning -> planning.expect(model, bytes, isPinned));
    }

    /** Records that a model serves, with its present memory. */
    public void loaded(OnDemandModel model) {
        loaded(model.key(), model.byteSize(), model.isPinned());
    }

    void loaded(String model, long bytes, boolean isPinned) {
        backOff.clear(model);
        planner.report(planning -> {
            planning.expect(model, bytes, isPinned);
            planning.loaded(model);
        });
        loads.advance();
    }

    /** Records that a client unloaded the model with a key. Requests that wait for it are refused. */
    public void unloaded(String model) {
        planner.report(planning -> planning.unloaded(model, DemandErrors.unloaded(model)));
        loads.advance();
    }

    @Override
    public void begun(Generation generation) {
        begun(generation.key(), generation.byteSize());
    }

    void begun(String model, long bytes) {
        planner.report(planning -> planning.begun(model, bytes));
    }

    @Override
    public void resized(Generation generation, long before) {
        resized(generation.key(), before, generation.byteSize());
    }

    void resized(String model, long before, long bytes) {
        planner.report(planning -> planning.resized(model, before, bytes));
        loads.advance();
    }

    @Override
    public void closed(Generation generation) {
        closed(generation.key(), generation.byteSize());
    }

    void closed(String model, long bytes) {
        planner.report(planning -> planning.closed(model, bytes));
        loads.advance();
    }

    /**
     * Returns counts and memory.
     *
     * @return the figures of this moment; models of several namespaces that have one name count together
     */
    public DemandStatistics statistics() {
        Map<String, Long> memory = new HashMap<>();
        planner.ask(Planning::snapshot).forEach((key, bytes) -> memory.merge(ModelKey.name(key), bytes, Long::sum));
        return new DemandStatistics(
                options.memoryBudget(), memory, loads.loadCount(), loads.evictionCount(), queues.waiting());
    }

    /**
     * Begins no more loads, as the server stops. Requests to models that are loading keep waiting. Later calls do
     * nothing.
     */
    public void end() {
        ended = true;
        planner.report(planning -> planning.stop(DemandErrors.stopped()));
        loads.advance();
    }

    /** Refuses requests that still wait. Called once, after {@link #end} and the last load. */
    @Override
    public void close() {
        loads.close();
        queues.close(DemandErrors.stopped());
    }
}
