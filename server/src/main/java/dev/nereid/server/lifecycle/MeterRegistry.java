package dev.nereid.server.lifecycle;

import static java.util.Objects.requireNonNull;

import dev.nereid.scheduler.statistics.ModelMeter;
import java.time.InstantSource;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** Keeps the statistics of each model version over its reloads. Safe for use by any thread. */
public final class MeterRegistry {
    /** By model, then by version; the inner maps are replaced as a whole. */
    private final ConcurrentHashMap<String, Map<Long, ModelMeter>> meters = new ConcurrentHashMap<>();

    private final InstantSource wallClock;

    /** Creates a registry without meters. Its clock tells the ends of executions. */
    public MeterRegistry(InstantSource wallClock) {
        this.wallClock = wallClock;
    }

    /** Returns the meter of a version, by the key of its model; the same until it is removed. */
    public ModelMeter of(String model, long version) {
        Map<Long, ModelMeter> versions = meters.compute(model, (_, before) -> {
            Map<Long, ModelMeter> changed = before == null ? new HashMap<>() : new HashMap<>(before);
            changed.computeIfAbsent(version, _ -> new ModelMeter(wallClock));
            return changed;
        });
        return requireNonNull(versions.get(version));
    }

    /** Removes the meters of the model with a key, except for given versions, which are loaded or in the repository. */
    public void retain(String model, Set<Long> versions) {
        meters.computeIfPresent(model, (_, before) -> {
            Map<Long, ModelMeter> changed = new HashMap<>(before);
            changed.keySet().retainAll(versions);
            return changed.isEmpty() ? null : changed;
        });
    }
}
