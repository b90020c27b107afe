package dev.nereid.server.demand;

import dev.nereid.api.InferenceException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The decisions of the {@link MemoryPlanner}, to be carried out without its lock. Immutable.
 *
 * @param loads the models to be loaded, for which memory is reserved
 * @param evictions the models to be evicted
 * @param held the acquisitions with all models loaded
 * @param refused the acquisitions that end, with the reasons
 * @param isBlocked whether an acquisition waits until a model becomes idle
 */
record Decisions(
        List<String> loads,
        List<String> evictions,
        List<Acquisition> held,
        Map<Acquisition, InferenceException> refused,
        boolean isBlocked) {
    Decisions {
        loads = List.copyOf(loads);
        evictions = List.copyOf(evictions);
        held = List.copyOf(held);
        refused = new LinkedHashMap<>(refused);
    }

    /** Returns whether there is nothing to do. */
    boolean isEmpty() {
        return loads.isEmpty() && evictions.isEmpty() && held.isEmpty() && refused.isEmpty();
    }
}
