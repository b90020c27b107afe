package dev.nereid.backend.tensorflow;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;

/**
 * Limits the sets of outputs with which a session is run. Safe for use by any thread.
 *
 * <p>A session computes only what leads to the fetched outputs, and keeps a plan for each set of them as long as it
 * lives. A client may request any of many sets; beyond the limit all outputs are fetched, and the rest is dropped.
 */
final class FetchSets {
    static final int LIMIT = 16;

    private final Set<Set<String>> planned = ConcurrentHashMap.newKeySet();
    private final Semaphore free = new Semaphore(LIMIT);

    /** Returns whether exactly these outputs may be fetched; otherwise all are to be. */
    boolean accepts(Set<String> outputs) {
        if (planned.contains(outputs)) {
            return true;
        }
        if (!free.tryAcquire()) {
            return false;
        }
        if (!planned.add(Set.copyOf(outputs))) {
            free.release(); // another instance has added it meanwhile
        }
        return true;
    }
}
