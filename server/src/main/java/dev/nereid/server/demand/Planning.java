package dev.nereid.server.demand;

import dev.nereid.api.InferenceException;
import dev.nereid.server.demand.MemoryTable.ModelMemory;
import dev.nereid.server.demand.ModelActions.ModelUse;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;

/**
 * Decides which models are loaded and which are evicted, within a memory budget. Guarded by the lock of the
 * {@link MemoryPlanner}; calls nothing foreign.
 *
 * <p>Callers report acquisitions and events; {@link #decide} then returns the actions to be taken. Memory is reserved
 * before a load, for all models of an acquisition at once or for none, so that acquisitions never wait for each other
 * while they hold something. Acquisitions are decided in the order of their arrival. One that cannot be granted, even
 * if all idle models were evicted, evicts none and lets later ones pass: it waits until models become idle.
 *
 * <p>Reserved and accounted bytes together never exceed the budget. Bytes that are to be freed by an eviction are
 * promised to one acquisition only.
 */
final class Planning {
    private final MemoryTable table;

    /** The acquisitions that are not held yet, in the order of their arrival. */
    private final Set<Acquisition> pending = new LinkedHashSet<>();

    /** The acquisitions that ended early, with the reasons, until the next decision reports them. */
    private final Map<Acquisition, InferenceException> ended = new LinkedHashMap<>();

    /** Creates a planner without models. Together they may take the bytes of the budget. */
    Planning(long budget) {
        table = new MemoryTable(budget);
    }

    /**
     * Records the expected memory of a model.
     *
     * @param bytes its memory when it is loaded, as far as known
     * @param isPinned whether it is never evicted
     */
    void expect(String key, long bytes, boolean isPinned) {
        ModelMemory model = table.of(key);
        model.expected = bytes;
        model.isPinned = isPinned;
    }

    /** Adds an acquisition, after the waiting ones. */
    void acquire(Acquisition acquisition) {
        pending.add(acquisition);
    }

    /** Ends an acquisition: no request waits for it any more, or its models have been used. Later calls do nothing. */
    void release(Acquisition acquisition) {
        end(acquisition);
        ended.remove(acquisition);
    }

    /** Records that a model serves, loaded by the planner or by a client. */
    void loaded(String key) {
        ModelMemory model = table.of(key);
        table.endReservation(model);
        model.state = ModelMemory.State.LOADED;
    }

    /** Records that a load of the planner ended well. It changes nothing if the model was unloaded since. */
    void loadEnded(String key) {
        if (table.of(key).state == ModelMemory.State.LOADING) {
            loaded(key);
        }
    }

    /** Records that a load of the planner failed. Acquisitions that wait for it end. */
    void failed(String key, InferenceException failure) {
        ModelMemory model = table.of(key);
        if (model.state == ModelMemory.State.LOADING) {
            table.endReservation(model);
            model.state = ModelMemory.State.UNLOADED;
            endPending(
                    acquisition -> acquisition.phase() == Acquisition.Phase.GRANTED
                            && acquisition.models().contains(key),
                    failure);
        }
    }

    /** Records that a client unloaded a model. Acquisitions that wait for it end. */
    void unloaded(String key, InferenceException reason) {
        ModelMemory model = table.of(key);
        table.endReservation(model);
        model.state = ModelMemory.State.UNLOADED;
        endPending(acquisition -> acquisition.models().contains(key), reason);
    }

    private void endPending(Predicate<Acquisition> which, InferenceException reason) {
        for (Acquisition acquisition : List.copyOf(pending)) {
            if (which.test(acquisition)) {
                end(acquisition);
                ended.put(acquisition, reason);
            }
        }
    }

    /** Records whether a model was evicted. Otherwise it is in use and stays. */
    void evicted(String key, boolean isEvicted) {
        ModelMemory model = table.of(key);
        if (model.state == ModelMemory.State.EVICTING) {
            model.state = isEvicted ? ModelMemory.State.UNLOADED : ModelMemory.State.LOADED;
        }
    }

    /** Accounts a generation of a model that was loaded. */
    void begun(String key, long bytes) {
        table.begin(table.of(key), bytes);
    }

    /**
     * Records that a loaded generation takes more or less memory than before. Memory beyond the budget is a debt, for
     * which the next decision evicts models that are idle. The reservation of the next load does not change: models
     * start with the memory of their last load, and a model that has grown beyond the budget can be loaded again.
     */
    void resized(String key, long before, long bytes) {
        table.resize(table.of(key), before, bytes);
    }

    /** Ends the account of a generation that is closed. */
    void closed(String key, long bytes) {
        table.close(table.of(key), bytes);
    }

    /** Ends the acquisitions that wait for memory, as the server stops. Acquisitions with loading models continue. */
    void stop(InferenceException reason) {
        endPending(acquisition -> acquisition.phase() == Acquisition.Phase.WAITING, reason);
    }

    /** Returns whether memory may have to be freed, so that {@link #decide} needs the uses of models. */
    boolean isShort() {
        long wanted = 0;
        for (Acquisition acquisition : pending) {
            wanted += acquisition.phase() == Acquisition.Phase.WAITING ? missingBytes(acquisition) : 0;
        }
        return wanted > table.free() || table.all().stream().anyMatch(model -> model.debt > 0);
    }

    /**
     * Decides about loads, evictions and acquisitions. The caller carries out all decisions.
     *
     * @param uses the uses of loaded models, by key; missing models are not evicted
     * @return the decisions, each made once
     */
    Decisions decide(Map<String, ModelUse> uses) {
        return new Round(uses).decide();
    }

    /** Returns the bytes that each model takes, debts included. */
    Map<String, Long> snapshot() {
        return table.snapshot();
    }

    /** Returns the bytes that all models take of the budget. */
    long used() {
        return table.used();
    }

    /** Returns the bytes that all models take, debts included: more than the budget, if models have grown beyond it. */
    long taken() {
        return table.taken();
    }

    private void end(Acquisition acquisition) {
        boolean isHolding =
                acquisition.phase() == Acquisition.Phase.GRANTED || acquisition.phase() == Acquisition.Phase.HELD;
        if (isHolding) {
            acquisition.models().forEach(key -> table.of(key).holds--);
        }
        acquisition.become(Acquisition.Phase.ENDED);
        pending.remove(acquisition);
    }

    private List<ModelMemory> missing(Acquisition acquisition) {
        return acquisition.models().stream()
                .map(table::of)
                .filter(model -> model.state == ModelMemory.State.UNLOADED || model.state == ModelMemory.State.EVICTING)
                .toList();
    }

    private long missingBytes(Acquisition acquisition) {
        return missing(acquisition).stream().mapToLong(model -> model.expected).sum();
    }

    /** One decision about everything that waits. */
    private final class Round {
        private final Map<String, ModelUse> uses;
        private final List<String> loads = new ArrayList<>();
        private final List<String> evictions = new ArrayList<>();
        private final List<Acquisition> held = new ArrayList<>();
        private final Map<Acquisition, InferenceException> refused = new LinkedHashMap<>(ended);
        private boolean isBlocked;

        /** The bytes that later acquisitions may reserve now. */
        private long free;

        /** The bytes that later acquisitions may reserve when all closing generations are closed. */
        private long coming;

        Round(Map<String, ModelUse> uses) {
            this.uses = uses;
            ended.clear();
        }

        Decisions decide() {
            table.all().forEach(table::settle);
            free = table.free();
            coming = free + table.leaving();
            table.all().stream().filter(model -> model.debt > 0).forEach(this::pay);
            for (Acquisition acquisition : List.copyOf(pending)) {
                if (acquisition.phase() == Acquisition.Phase.WAITING) {
                    grant(acquisition);
                }
                if (acquisition.phase() == Acquisition.Phase.GRANTED && isLoaded(acquisition)) {
                    acquisition.become(Acquisition.Phase.HELD);
                    pending.remove(acquisition);
                    held.add(acquisition);
                }
            }
            return new Decisions(loads, evictions, held, refused, isBlocked);
        }

        private boolean isLoaded(Acquisition acquisition) {
            return acquisition.models().stream().allMatch(key -> table.of(key).state == ModelMemory.State.LOADED);
        }

        /** Frees memory for a model that takes more than was reserved; at worst, the model itself goes. */
        private void pay(ModelMemory model) {
            free = 0;
            if (promise(model.debt, Set.of(model.key)) || promise(model.debt, Set.of())) {
                return;
            }
            ModelUse use = uses.get(model.key);
            if (use != null && use.isIdle() && model.isEvictable()) { // its debt goes with it
                evict(model);
            } else {
                isBlocked = true;
            }
        }

        private void grant(Acquisition acquisition) {
            Set<String> own = new HashSet<>(acquisition.models());
            List<ModelMemory> missing = missing(acquisition);
            long limit = table.budget() - table.pinnedBytes(own);
            long all = own.stream().map(table::of).mapToLong(ModelMemory::least).sum();
            if (all > limit && !missing.isEmpty()) {
                end(acquisition);
                refused.put(acquisition, DemandErrors.tooLarge(acquisition.models(), all, limit));
                return;
            }
            long need = missingBytes(acquisition);
            boolean isEvicting = missing.stream().anyMatch(model -> model.state == ModelMemory.State.EVICTING);
            if (need <= free && !isEvicting) {
                reserve(acquisition, missing);
                free -= need;
                coming -= need;
            } else if (promise(need, own) || promise(need, notGrown(own))) {
                free = Math.max(0, free - need);
            } else {
                isBlocked = true;
            }
        }

        /** Returns the models that would take no less memory if they were loaded again. */
        private Set<String> notGrown(Set<String> models) {
            Set<String> others = new HashSet<>(models);
            others.removeIf(key -> table.of(key).taken() > table.of(key).expected);
            return others;
        }

        private void reserve(Acquisition acquisition, List<ModelMemory> missing) {
            for (ModelMemory model : missing) {
                table.reserve(model);
                model.state = ModelMemory.State.LOADING;
                loads.add(model.key);
            }
            acquisition.models().forEach(key -> table.of(key).holds++);
            acquisition.become(Acquisition.Phase.GRANTED);
        }

        private void evict(ModelMemory model) {
            model.state = ModelMemory.State.EVICTING;
            evictions.add(model.key);
            coming += model.accounted;
        }

        /** Promises bytes that are coming, or are made to come by evictions. */
        private boolean promise(long bytes, Set<String> without) {
            if (bytes > coming) {
                List<ModelMemory> victims = table.victims(bytes - coming, uses, without);
                if (victims.isEmpty()) {
                    return false;
                }
                victims.forEach(this::evict);
            }
            coming -= bytes;
            return true;
        }
    }

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
}
