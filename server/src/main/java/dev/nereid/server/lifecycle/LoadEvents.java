package dev.nereid.server.lifecycle;

import dev.nereid.api.statistics.LoadCounts;
import java.time.Duration;
import java.util.List;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.UnaryOperator;

/** Counts the loads and unloads of each model. Lock-free; safe for use by any thread. */
public final class LoadEvents {
    /** The name under which further models count together, so that names of clients take limited memory. */
    static final String OTHERS = "";

    /** The number of models that are counted by name. */
    static final int MAX_MODELS = 10_000;

    private final ConcurrentHashMap<String, LoadCounts> counts = new ConcurrentHashMap<>();

    /** Counts a version of the model with a name, and the nanoseconds that its load took. */
    public void loaded(String model, long nanos) {
        change(
                model,
                before -> new LoadCounts(
                        before.model(),
                        before.loads() + 1,
                        before.failures(),
                        before.unloads(),
                        before.loadTime().plusNanos(nanos)));
    }

    /** Counts a failed load of the model with a name. */
    public void failed(String model) {
        change(
                model,
                before -> new LoadCounts(
                        before.model(), before.loads(), before.failures() + 1, before.unloads(), before.loadTime()));
    }

    /** Counts a version that was unloaded. */
    void unloaded(String model) {
        change(
                model,
                before -> new LoadCounts(
                        before.model(), before.loads(), before.failures(), before.unloads() + 1, before.loadTime()));
    }

    private void change(String model, UnaryOperator<LoadCounts> change) {
        String name = counts.containsKey(model) || counts.size() < MAX_MODELS ? model : OTHERS;
        counts.compute(
                name,
                (_, before) -> change.apply(before == null ? new LoadCounts(name, 0, 0, 0, Duration.ZERO) : before));
    }

    List<LoadCounts> counts() {
        return List.copyOf(new TreeMap<>(counts).values());
    }
}
