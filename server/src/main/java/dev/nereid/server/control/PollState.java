package dev.nereid.server.control;

import dev.nereid.repository.ModelFingerprint;
import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;

/**
 * Decides after each scan of the repository which models are loaded and unloaded. Confined to the poller.
 *
 * <p>A change counts when two scans, at least the stability window apart, have found the same files, so that a model
 * that is being copied is left alone. The same holds for a model that vanished. A load that failed is tried again,
 * after twice the time each time, until its files change.
 */
final class PollState {
    /** The longest pause before a failed load is tried again, in intervals. */
    static final int MAX_BACKOFF = 32;

    private final long intervalNanos;
    private final long windowNanos;
    private final Map<String, Model> models = new HashMap<>();

    /** The models with replaced plugins, as of the last scan. */
    private Map<String, String> outdated = Map.of();

    private long pluginChanges;

    PollState(Duration interval, Duration window) {
        intervalNanos = interval.toNanos();
        windowNanos = window.toNanos();
    }

    long intervalNanos() {
        return intervalNanos;
    }

    /** The state of one model. Its fingerprints are empty while it is not in the repository. */
    private static final class Model {
        private Optional<ModelFingerprint> taken = Optional.empty();
        private Optional<ModelFingerprint> seen = Optional.empty();
        private long seenNanos;
        private boolean isChanging;
        private boolean isBusy;
        private int failures;
        private long retryNanos;
    }

    /**
     * The decision after a scan. Immutable.
     *
     * @param known the models that are present or may come back; their local copies are kept
     * @param pauseNanos the time until the next scan
     */
    record Decision(Set<String> loads, Set<String> unloads, Set<String> known, long pauseNanos) {}

    /** Records the models of the start, before the first scan. One that has vanished by then is unloaded. */
    void begin(Set<String> loaded) {
        for (String name : loaded) {
            models.computeIfAbsent(name, _ -> new Model()).taken = Optional.of(ModelFingerprint.UNSEEN);
        }
    }

    /**
     * Records the plugins, before the models of a scan. Models of replaced plugins are loaded again. When plugins were
     * added or replaced, failed loads are tried again at once.
     *
     * @param changes how often a plugin was added or replaced
     * @param replaced the keys of models that were loaded by other plugins, each with a text for the present one
     * @param nowNanos the time of the scan
     */
    void recordPlugins(long changes, Map<String, String> replaced, long nowNanos) {
        Map<String, String> seen = new HashMap<>();
        replaced.forEach((key, plugin) -> {
            Model model = models.get(key);
            boolean isKnown = plugin.equals(outdated.get(key));
            if (model != null && !model.isBusy && !isKnown) {
                model.taken = Optional.of(ModelFingerprint.UNSEEN);
            }
            if (isKnown || (model != null && !model.isBusy)) {
                seen.put(key, plugin);
            }
        });
        if (changes != pluginChanges) {
            models.values().stream().filter(model -> model.failures > 0).forEach(model -> model.retryNanos = nowNanos);
        }
        outdated = Map.copyOf(seen);
        pluginChanges = changes;
    }

    /**
     * Decides after a scan.
     *
     * @param present the models in the repository, with the state of their files
     * @param nowNanos the time of the scan
     */
    Decision decide(Map<String, ModelFingerprint> present, long nowNanos) {
        Set<String> loads = new TreeSet<>();
        Set<String> unloads = new TreeSet<>();
        long pause = intervalNanos;
        Set<String> all = new HashSet<>(models.keySet());
        all.addAll(present.keySet());
        for (String name : all) {
            Model model = models.computeIfAbsent(name, _ -> new Model());
            Optional<ModelFingerprint> files = Optional.ofNullable(present.get(name));
            if (model.isBusy) {
                continue;
            }
            if (isDue(model, files, nowNanos)) {
                model.taken = files;
                model.isChanging = false;
                model.isBusy = true;
                (files.isPresent() ? loads : unloads).add(name);
            } else if (model.isChanging) {
                pause = Math.min(pause, Math.max(1, model.seenNanos + windowNanos - nowNanos));
            } else if (files.isEmpty()) {
                models.remove(name);
            }
        }
        return new Decision(loads, unloads, Set.copyOf(models.keySet()), pause);
    }

    private boolean isDue(Model model, Optional<ModelFingerprint> files, long nowNanos) {
        if (files.equals(model.taken)) {
            model.isChanging = false;
            return model.failures > 0 && nowNanos - model.retryNanos >= 0;
        }
        if (!model.isChanging || !files.equals(model.seen)) {
            model.isChanging = true;
            model.seen = files;
            model.seenNanos = nowNanos;
            model.failures = 0;
        }
        return nowNanos - model.seenNanos >= windowNanos;
    }

    /** Records the end of a load or unload that was decided. */
    void ended(String name, boolean isSuccess, long nowNanos) {
        Model model = models.get(name);
        if (model == null) {
            return;
        }
        model.isBusy = false;
        if (isSuccess) {
            model.failures = 0;
        } else {
            model.retryNanos = nowNanos + intervalNanos * Math.min(MAX_BACKOFF, 1L << Math.min(model.failures, 30));
            model.failures++;
        }
    }
}
