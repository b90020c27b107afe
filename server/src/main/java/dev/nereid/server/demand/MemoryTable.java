package dev.nereid.server.demand;

import dev.nereid.server.demand.ModelActions.ModelUse;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/**
 * The memory of all models, and its sum, which never exceeds the budget. Guarded by the lock of the
 * {@link MemoryPlanner}.
 */
final class MemoryTable {
    private final long budget;
    private final Map<String, ModelMemory> models = new HashMap<>();

    /** The sum of the bytes that all models use. */
    private long used;

    /** Creates an empty table. Together, models may take the bytes of the budget. */
    MemoryTable(long budget) {
        this.budget = budget;
    }

    /** Returns a model, which is added if it is not known. */
    ModelMemory of(String key) {
        return models.computeIfAbsent(key, ModelMemory::new);
    }

    Collection<ModelMemory> all() {
        return models.values();
    }

    long budget() {
        return budget;
    }

    /** Returns the bytes that are reserved and accounted. */
    long used() {
        return used;
    }

    /** Returns the bytes that are reserved, accounted and owed. */
    long taken() {
        return models.values().stream().mapToLong(ModelMemory::taken).sum();
    }

    /** Returns the bytes that may still be reserved. */
    long free() {
        return budget - used;
    }

    /** Returns the bytes that are being closed. */
    long leaving() {
        return models.values().stream().mapToLong(ModelMemory::leaving).sum();
    }

    /** Returns the bytes of pinned models, loaded or not, other than some. */
    long pinnedBytes(Collection<String> without) {
        return models.values().stream()
                .filter(model -> model.isPinned && !without.contains(model.key))
                .mapToLong(ModelMemory::least)
                .sum();
    }

    /** Reserves the memory of a load, which fits. */
    void reserve(ModelMemory model) {
        if (model.expected > free()) {
            throw new IllegalStateException(model.expected + " > " + free());
        }
        model.reserved += model.expected;
        used += model.expected;
    }

    /** Frees the bytes that a load has reserved and not used. */
    void endReservation(ModelMemory model) {
        used -= model.reserved;
        model.reserved = 0;
    }

    /** Accounts a generation that begins: first from the reservation, then as far as the budget allows. */
    void begin(ModelMemory model, long bytes) {
        long fromReservation = Math.min(bytes, model.reserved);
        model.reserved -= fromReservation;
        model.accounted += fromReservation;
        model.debt += bytes - fromReservation;
        settle(model);
    }

    /** Changes the account of a generation. A reservation stays for the load that made it. */
    void resize(ModelMemory model, long before, long bytes) {
        if (bytes < before) {
            close(model, before - bytes);
        } else {
            model.debt += bytes - before;
            settle(model);
        }
    }

    /** Accounts as much of a debt as the budget allows. */
    void settle(ModelMemory model) {
        long grown = Math.min(model.debt, Math.max(0, free()));
        model.debt -= grown;
        model.accounted += grown;
        used += grown;
    }

    /** Ends the account of a generation that is closed. */
    void close(ModelMemory model, long bytes) {
        long fromDebt = Math.min(bytes, model.debt);
        long freed = Math.min(bytes - fromDebt, model.accounted);
        model.debt -= fromDebt;
        model.accounted -= freed;
        used -= freed;
    }

    /**
     * Selects models to be evicted, the least recently used first.
     *
     * @param bytes the bytes to be freed
     * @param uses the uses of loaded models
     * @param without the models that stay
     * @return the models; empty if all that could be evicted do not suffice
     */
    List<ModelMemory> victims(long bytes, Map<String, ModelUse> uses, Set<String> without) {
        List<ModelMemory> victims = new ArrayList<>();
        long found = 0;
        long origin = uses.isEmpty() ? 0 : uses.values().iterator().next().usedNanos();
        List<ModelUse> order = uses.values().stream()
                .filter(ModelUse::isIdle) // values of nanoTime may overflow, so their differences are compared
                .sorted(Comparator.comparingLong(use -> use.usedNanos() - origin))
                .toList();
        for (ModelUse use : order) {
            ModelMemory model = models.get(use.key());
            if (model != null && model.isEvictable() && !without.contains(model.key)) {
                victims.add(model);
                found += model.accounted;
                if (found >= bytes) {
                    return victims;
                }
            }
        }
        return List.of();
    }

    /** Returns the bytes of the models that take memory, debts included, by key. */
    Map<String, Long> snapshot() {
        Map<String, Long> bytes = new TreeMap<>();
        for (ModelMemory model : models.values()) {
            if (model.taken() > 0) {
                bytes.put(model.key, model.taken());
            }
        }
        return bytes;
    }

    /**
     * Memory and state of one model that is loaded on demand. Guarded by the lock of the {@link MemoryPlanner}.
     *
     * <p>Bytes are reserved before a load, and accounted for generations from their begin to the end of their close. Bytes
     * of a generation beyond its reservation are accounted as soon as the budget has room for them; until then they are a
     * debt.
     */
    static final class ModelMemory {
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
}
