package dev.nereid.server.control;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.api.InferenceException;
import dev.nereid.repository.ModelFingerprint;
import dev.nereid.scheduler.SchedulerEnvironment;
import dev.nereid.scheduler.time.Timeout;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Scans the repository periodically, and starts loads and unloads of changed models. Started and closed once.
 *
 * <p>A timeout of the server's timer begins each scan. Scans run on a separate thread, one at a time.
 */
final class RepositoryPoller implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(RepositoryPoller.class);

    /** Loads and unloads models. Safe for use by any thread; never blocks unless it says so. */
    interface Actions {
        /** Loads a model; completed at the end of the load, with an error if it failed. */
        CompletionStage<Void> load(String model);

        /** Unloads a model; completed when it takes no more requests. */
        CompletionStage<Void> unload(String model);

        /** Deletes the local copies of all other models. Blocks. */
        void retain(Set<String> models);
    }

    /**
     * The plugins at a scan. Immutable.
     *
     * @param changes how often one was added or replaced
     * @param outdated the models that were loaded by replaced plugins, by key, each with the present plugin
     */
    record PluginState(long changes, Map<String, String> outdated) {
        PluginState {
            outdated = Map.copyOf(outdated);
        }
    }

    private final Supplier<Map<String, ModelFingerprint>> files;
    private final Supplier<PluginState> plugins;
    private final Actions actions;
    private final LongSupplier nanoTime;
    private final Timeout timeout;
    private final ReentrantLock lock = new ReentrantLock();

    @GuardedBy("lock")
    private final PollState state;

    private final long intervalNanos;
    private volatile boolean closed;

    /**
     * Creates a poller that does not scan yet.
     *
     * @param files reads the state of the files of all models; blocks
     * @param plugins reads the state of the plugins; blocks
     * @param actions loads and unloads them
     * @param state decides
     * @param executor runs the scans
     */
    RepositoryPoller(
            Supplier<Map<String, ModelFingerprint>> files,
            Supplier<PluginState> plugins,
            Actions actions,
            PollState state,
            SchedulerEnvironment.Clocks clocks,
            Executor executor) {
        this.files = files;
        this.plugins = plugins;
        this.actions = actions;
        this.state = state;
        intervalNanos = state.intervalNanos();
        nanoTime = clocks.nanoTime();
        timeout = clocks.timer().newTimeout(() -> begin(executor));
    }

    /** Begins to poll, at once for the first time, with the keys of the models that are loaded already. */
    void start(Set<String> loaded) {
        lock.lock();
        try {
            state.begin(loaded);
        } finally {
            lock.unlock();
        }
        timeout.scheduleAtLatest(nanoTime.getAsLong());
    }

    /** Begins a scan. If no thread can be started for it, the next scan still begins after the interval. */
    private void begin(Executor executor) {
        boolean begun = false;
        try {
            executor.execute(this::scan);
            begun = true;
        } finally {
            if (!begun && !closed) {
                timeout.scheduleAtLatest(nanoTime.getAsLong() + intervalNanos);
            }
        }
    }

    private void scan() {
        long pause = intervalNanos;
        try {
            pause = act(files.get(), plugins.get());
        } catch (InferenceException e) {
            LOG.atError().log("failed to poll model repository: {}", e.publicMessage());
        } finally {
            if (!closed) {
                timeout.scheduleAtLatest(nanoTime.getAsLong() + pause);
            }
        }
    }

    /** Acts on the result of a scan; returns the time until the next scan. */
    private long act(Map<String, ModelFingerprint> present, PluginState loaders) {
        PollState.Decision decision;
        lock.lock();
        try {
            state.recordPlugins(loaders.changes(), loaders.outdated(), nanoTime.getAsLong());
            decision = state.decide(present, nanoTime.getAsLong());
        } finally {
            lock.unlock();
        }
        decision.loads().forEach(model -> watch(model, load(model, present.get(model))));
        decision.unloads().forEach(model -> watch(model, actions.unload(model)));
        actions.retain(decision.known());
        return decision.pauseNanos();
    }

    /** Loads a model. One that lies in several repositories is not served any more; its load shows why. */
    private CompletionStage<Void> load(String model, @Nullable ModelFingerprint files) {
        return ModelFingerprint.AMBIGUOUS.equals(files)
                ? actions.unload(model).thenCompose(_ -> actions.load(model))
                : actions.load(model);
    }

    private void watch(String model, CompletionStage<Void> outcome) {
        outcome.whenComplete((_, failure) -> {
            lock.lock();
            try {
                state.ended(model, failure == null, nanoTime.getAsLong());
            } finally {
                lock.unlock();
            }
        });
    }

    /** Ends the polling. A scan in progress ends. */
    @Override
    public void close() {
        closed = true;
        timeout.close();
    }
}
