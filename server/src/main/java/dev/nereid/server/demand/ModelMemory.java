package dev.nereid.server.demand;

/**
 * Memory and state of one model that is loaded on demand. Guarded by the lock of the {@link MemoryPlanner}.
 *
 * <p>Bytes are reserved before a load, and accounted for generations from their begin to the end of their close. Bytes
 * of a generation beyond its reservation are accounted as soon as the budget has room for them; until then they are a
 * debt.
 */
final class ModelMemory {
    /** The state of a model. */
    enum State {
        UNLOADED,
        LOADING,
        LOADED,
        EVICTING
    }

    final String key;
    State state = State.UNLOADED;

    /**
     * The bytes of the model right after its last load, or an estimate. Growth while it serves does not change them.
     */
    long expected;

    /** The bytes that are kept free for a load in progress. */
    long reserved;

    /** The bytes of generations that are accounted. */
    long accounted;

    /** The bytes of generations that are not accounted yet. */
    long debt;

    /** The number of acquisitions that are granted, or hold the model. */
    int holds;

    boolean isPinned;

    ModelMemory(String key) {
        this.key = key;
    }

    /** Returns the bytes that count against the budget. */
    long used() {
        return reserved + accounted;
    }

    /** Returns the bytes that are kept free or taken, whether or not the budget has room for them. */
    long taken() {
        return used() + debt;
    }

    /** Returns the bytes that the model needs after other models were evicted. A pinned model keeps its memory. */
    long least() {
        return isPinned ? Math.max(expected, taken()) : expected;
    }

    /** Returns the bytes that will be free soon, since the generations of the model are being closed. */
    long leaving() {
        return state == State.EVICTING || state == State.UNLOADED ? accounted : 0;
    }

    /** Returns whether the model could be evicted if nothing used it. */
    boolean isEvictable() {
        return state == State.LOADED && !isPinned && holds == 0;
    }
}
