package dev.nereid.server.demand;

import dev.nereid.api.InferenceException;
import dev.nereid.scheduler.time.Timeout;
import dev.nereid.scheduler.time.Timer;
import dev.nereid.spi.ErrorCode;
import java.time.Duration;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Function;
import java.util.function.LongSupplier;
import java.util.stream.Collectors;

/**
 * Carries out the planner's decisions: loads, evicts, and reports outcomes. Safe for use by any thread; never blocks.
 *
 * <p>One thread at a time decides. A report from another thread meanwhile makes it decide once more. Outcomes are
 * reported on separate threads, since observers are called there.
 */
final class DecisionExecutor implements AutoCloseable {
    /** How long an acquisition waits before models are checked again, when all of them are in use. */
    static final Duration RETRY_INTERVAL = Duration.ofMillis(5);

    private final MemoryPlanner planner;
    private final ModelActions actions;
    private final LoadBackOff backOff;
    private final Executor executor;
    private final LongSupplier nanoTime;
    private final Timeout retry;

    /** The reports since the last decision began; 0 while no thread decides. */
    private final AtomicInteger reports = new AtomicInteger();

    private final LongAdder loads = new LongAdder();
    private final LongAdder evictions = new LongAdder();

    DecisionExecutor(
            MemoryPlanner planner,
            ModelActions actions,
            LoadBackOff backOff,
            Executor executor,
            LongSupplier nanoTime,
            Timer timer) {
        this.planner = planner;
        this.actions = actions;
        this.backOff = backOff;
        this.executor = executor;
        this.nanoTime = nanoTime;
        retry = timer.newTimeout(this::advance);
    }

    /** Decides again, after something was reported to the planner. */
    void advance() {
        if (reports.getAndIncrement() == 0) {
            executor.execute(this::decideAll);
        }
    }

    private void decideAll() {
        int seen;
        do {
            seen = reports.get();
            decide();
        } while (!reports.compareAndSet(seen, 0));
    }

    private void decide() {
        Map<String, ModelActions.ModelUse> uses = planner.ask(Planning::isShort)
                ? actions.uses().stream().collect(Collectors.toMap(ModelActions.ModelUse::key, Function.identity()))
                : Map.of();
        Planning.Decisions decisions = planner.ask(planning -> planning.decide(uses));
        decisions.refused().forEach((acquisition, reason) -> executor.execute(() -> acquisition.decide(reason)));
        decisions.held().forEach(acquisition -> executor.execute(() -> acquisition.decide(null)));
        decisions.evictions().forEach(this::evict);
        refreshMemory(uses.keySet(), decisions);
        decisions.loads().forEach(this::load);
        if (decisions.isBlocked()) {
            retry.scheduleAtLatest(nanoTime.getAsLong() + RETRY_INTERVAL.toNanos());
        }
    }

    /**
     * Refreshes, for the next decisions, the memory of models that stay loaded. Skips evicted models, which must be
     * idle.
     */
    private void refreshMemory(Set<String> loaded, Planning.Decisions decisions) {
        Set<String> leaving = Set.copyOf(decisions.evictions());
        loaded.stream().filter(model -> !leaving.contains(model)).forEach(actions::refreshMemory);
    }

    private void load(String model) {
        loads.increment();
        actions.load(model).whenComplete((_, failure) -> {
            if (failure == null) {
                backOff.clear(model);
                planner.report(planning -> planning.loadEnded(model));
            } else {
                InferenceException reason = failed(model, failure);
                planner.report(planning -> planning.failed(model, reason));
            }
            advance();
        });
    }

    private InferenceException failed(String model, Throwable failure) {
        Throwable cause =
                failure instanceof CompletionException && failure.getCause() != null ? failure.getCause() : failure;
        InferenceException reason = cause instanceof InferenceException known
                ? known
                : new InferenceException(ErrorCode.INTERNAL, "internal error: " + cause);
        return backOff.failed(model, reason);
    }

    private void evict(String model) {
        actions.evict(model).whenComplete((isEvicted, failure) -> {
            boolean done = failure == null && isEvicted;
            if (done) {
                evictions.increment();
            }
            planner.report(planning -> planning.evicted(model, done));
            advance();
        });
    }

    /** Returns the number of loads that were begun for requests. */
    long loadCount() {
        return loads.sum();
    }

    long evictionCount() {
        return evictions.sum();
    }

    @Override
    public void close() {
        retry.close();
    }
}
