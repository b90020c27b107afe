package dev.nereid.server.demand;

import dev.nereid.api.InferenceException;
import java.util.List;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/**
 * An acquisition of memory for models that are loaded together: all or none. Its phase is guarded by the lock of the
 * {@link MemoryPlanner}.
 *
 * <p>It waits for memory, then for the loads, and then holds its models, which are not evicted meanwhile, until it is
 * released. It ends early with the failure of a load, or when it is abandoned.
 */
final class Acquisition {
    /** How far an acquisition is. */
    enum Phase {
        /** Nothing is reserved for it. */
        WAITING,
        /** Its models are loaded, or will be: memory is reserved for all. */
        GRANTED,
        /** All models are loaded; it holds them. */
        HELD,
        /** It holds nothing. */
        ENDED
    }

    private final List<String> models;
    private final BiConsumer<Acquisition, @Nullable InferenceException> whenDecided;
    private Phase phase = Phase.WAITING;

    /**
     * Creates an acquisition.
     *
     * @param models the keys of the models, at least one, each once
     * @param whenDecided called at most once, outside of the lock: with {@code null} when all models are loaded and held,
     *     or with the reason why that will not happen
     */
    Acquisition(List<String> models, BiConsumer<Acquisition, @Nullable InferenceException> whenDecided) {
        this.models = List.copyOf(models);
        this.whenDecided = whenDecided;
    }

    List<String> models() {
        return models;
    }

    /** Returns the phase. Called with the lock of the planner. */
    Phase phase() {
        return phase;
    }

    /** Changes the phase. Called with the lock of the planner. */
    void become(Phase next) {
        phase = next;
    }

    /** Reports the outcome. Called once, without the lock of the planner. */
    void decide(@Nullable InferenceException failure) {
        whenDecided.accept(this, failure);
    }
}
