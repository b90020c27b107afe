package dev.nereid.server.control;

import dev.nereid.api.ModelRef;
import dev.nereid.api.ThreadStack;
import dev.nereid.server.lifecycle.Generation;
import dev.nereid.server.lifecycle.LiveGenerations;
import dev.nereid.server.lifecycle.ModelLoadWatch;
import dev.nereid.server.lifecycle.ServedModel;
import dev.nereid.server.lifecycle.ServedModels;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Closes all models within a time budget, and abandons the requests of slower models. Used once. */
final class ModelShutdown {
    private static final Logger LOG = LoggerFactory.getLogger(ModelShutdown.class);

    /** How long models may take to close that have waited for others to become idle. */
    private static final Duration LAST_CLOSES = Duration.ofMillis(100);

    /** The time to notify backends and clients after the budget. */
    private static final Duration ABANDON_TIMEOUT = Duration.ofSeconds(1);

    /**
     * How long a stop first waits for a model's requests before it searches for objects that a plugin has forgotten.
     */
    private static final long FIRST_SEARCH_NANOS = TimeUnit.SECONDS.toNanos(1);

    /** The time between two checks whether only responses are left that models hold. */
    private static final long HELD_CHECK_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    private final ServedModels models;
    private final LiveGenerations live;
    private final CatalogUpdater catalog;
    private final Set<ModelRef> callers;
    private final ModelLoadWatch watch;
    private final LongSupplier nanoTime;

    /**
     * Creates the shutdown of a server's models.
     *
     * @param callers the versions that send requests to other models, by key; read at the shutdown
     * @param watch knows the loads and closes in progress
     */
    ModelShutdown(
            ServedModels models,
            LiveGenerations live,
            CatalogUpdater catalog,
            Set<ModelRef> callers,
            ModelLoadWatch watch,
            LongSupplier nanoTime) {
        this.watch = watch;
        this.callers = callers;
        this.models = models;
        this.live = live;
        this.catalog = catalog;
        this.nanoTime = nanoTime;
    }

    /**
     * Waits for the tasks that run, drains every model, and unloads all when no request is in flight.
     *
     * @param tasks the tasks, of which no more begin
     * @param budget how long this may take
     * @return whether everything was closed in time
     */
    boolean close(ControlTasks tasks, Duration budget) {
        boolean closed = false;
        try {
            closed = closeWithin(tasks, nanoTime.getAsLong() + budget.toNanos());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        if (!closed) {
            reportUnfinished();
            abandon();
        }
        return closed;
    }

    private boolean closeWithin(ControlTasks tasks, long deadline) throws InterruptedException {
        if (!tasks.awaitEnd(deadline - nanoTime.getAsLong())) {
            return false;
        }
        boolean idle = false;
        try {
            long now = nanoTime.getAsLong();
            awaitCallers(now + (deadline - now) / 2); // then models execute what they delay, in the other half
            models.end();
            idle = awaitIdle(deadline);
        } finally {
            catalog.unloadAll(); // also models that close later, when a backend returns after all
        }
        // What closes at once is not reported as unfinished, even if others have used up the time.
        boolean closed = live.awaitAllClosed(idle ? deadline - nanoTime.getAsLong() : LAST_CLOSES.toNanos());
        return idle && closed;
    }

    /** Waits for ensembles, and for models that send requests, before the called models refuse requests. */
    private void awaitCallers(long deadline) throws InterruptedException {
        live.all().forEach(generation -> generation.model().expectUnload());
        List<Generation> calling = live.all().stream().filter(this::isCalling).toList();
        boolean inTime = true;
        while (inTime && calling.stream().anyMatch(ModelShutdown::isWorking)) { // they may send requests to each other
            for (Generation generation : calling) {
                inTime = inTime && awaitIdle(generation, deadline);
            }
        }
    }

    private static boolean isWorking(Generation generation) {
        return generation.model().hasRequests() && !generation.isHeld();
    }

    /** Returns whether any model sends requests to others, so that clients have to be refused first. */
    boolean hasCallers() {
        return live.all().stream().anyMatch(this::isCalling);
    }

    private boolean isCalling(Generation generation) {
        ServedModel model = generation.model();
        return model.isEnsemble()
                || !model.required().isEmpty()
                || callers.contains(new ModelRef(generation.key(), model.version()));
    }

    /** Waits for the requests of all models. Clients still find the models, but schedulers refuse new requests. */
    private boolean awaitIdle(long deadline) throws InterruptedException {
        List<Generation> loaded = List.copyOf(live.all());
        loaded.forEach(generation -> generation.model().drain());
        for (Generation generation : loaded) {
            if (!awaitIdle(generation, deadline)) {
                return false;
            }
        }
        return true;
    }

    /**
     * Waits for the requests of a model. Responses that other models hold do not count, since they end with those
     * models.
     */
    private boolean awaitIdle(Generation generation, long deadline) throws InterruptedException {
        long searchAfter = FIRST_SEARCH_NANOS;
        long begun = nanoTime.getAsLong();
        while (true) {
            long now = nanoTime.getAsLong();
            if (now - begun >= searchAfter) { // a plugin may have forgotten objects that it has to end
                generation.findForgotten();
                searchAfter *= 2;
            }
            long left = deadline - now;
            boolean wasHeld = generation.isHeld();
            if (generation.model().awaitIdle(Math.min(left, HELD_CHECK_NANOS)) || (wasHeld && generation.isHeld())) {
                return true;
            }
            if (left <= 0) {
                return false;
            }
        }
    }

    private static void reportExecution(ServedModel model, String instance, Thread thread) {
        StackTraceElement[] stack = thread.getStackTrace();
        if (!thread.equals(model.executing().get(instance))) { // ended by now: the stack may be that of another model
            return;
        }
        LOG.atWarn()
                .addKeyValue("model", model.config().getName())
                .addKeyValue("version", model.version())
                .addKeyValue("instance", instance)
                .addKeyValue("requests", model.inFlight())
                .setCause(ThreadStack.of(thread, stack))
                .log(
                        "execution has not ended within the exit timeout (model '{}', version {}, instance '{}', {} requests)",
                        model.config().getName(),
                        model.version(),
                        instance,
                        model.inFlight());
    }

    /** Names, with their stacks, the executions, loads and closes that the stop did not wait for any longer. */
    private void reportUnfinished() {
        for (Generation generation : live.all()) {
            ServedModel model = generation.model();
            model.executing().forEach((instance, thread) -> reportExecution(model, instance, thread));
            if (model.executing().isEmpty() && model.hasRequests()) {
                String name = model.settings().name();
                String held = generation.heldReason();
                LOG.atWarn()
                        .addKeyValue("model", name)
                        .addKeyValue("version", model.version())
                        .addKeyValue("requests", model.inFlight())
                        .log(
                                "requests have not ended within the exit timeout (model '{}', version {}, {} requests){}",
                                name,
                                model.version(),
                                model.inFlight(),
                                held.isEmpty() ? "" : "; it " + held);
            }
        }
        watch.reportUnfinished();
    }

    /** Abandons the requests of every model, on separate threads. The notified backends and observers may block. */
    private void abandon() {
        ExecutorService abandoners = Executors.newThreadPerTaskExecutor(
                Thread.ofVirtual().name("abandon/", 0).factory());
        for (Generation generation : live.all()) {
            abandoners.execute(() -> generation.model().abandon());
        }
        abandoners.shutdown();
        boolean interrupted = Thread.interrupted(); // perhaps the reason for the timeout
        try {
            if (!abandoners.awaitTermination(ABANDON_TIMEOUT.toNanos(), TimeUnit.NANOSECONDS)) {
                LOG.atWarn().log("requests not completed at shutdown: a backend or an observer blocks");
            }
        } catch (InterruptedException e) {
            interrupted = true;
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
