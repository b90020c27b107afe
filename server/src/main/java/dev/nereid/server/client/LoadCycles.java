package dev.nereid.server.client;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;

/**
 * Refuses loads and unloads that would wait for each other for ever. It knows which loads and unloads each model has
 * asked for while it is loaded. Safe for use by any thread; never blocks.
 */
final class LoadCycles {
    private final ReentrantLock lock = new ReentrantLock();

    /** The loads for which each loading model has asked, and that have not ended. */
    @GuardedBy("lock")
    private final Map<String, List<Requested>> requested = new HashMap<>();

    /** A requested load, and whether the load of the model that asked for it continues. */
    private record Requested(String model, BooleanSupplier isAwaited) {}

    /**
     * Adds a load, unless that model has asked for the load of the other one, itself or by others.
     *
     * @param loading the key of the model that is loaded
     * @param goesOn whether its load is in progress
     * @param other the key of the model for which it asks
     * @return removes it, to be run when it has ended; empty if it was not added
     */
    Optional<Runnable> begin(String loading, BooleanSupplier goesOn, String other) {
        Requested added = new Requested(other, goesOn);
        lock.lock();
        try {
            if (reaches(other, loading)) {
                return Optional.empty();
            }
            requested.computeIfAbsent(loading, _ -> new ArrayList<>()).add(added);
        } finally {
            lock.unlock();
        }
        return Optional.of(() -> end(loading, added));
    }

    @SuppressWarnings("ReferenceEquality") // A model may ask twice.
    private void end(String loading, Requested ended) {
        lock.lock();
        try {
            requested.computeIfPresent(loading, (_, others) -> {
                others.removeIf(candidate -> candidate == ended);
                return others.isEmpty() ? null : others;
            });
        } finally {
            lock.unlock();
        }
    }

    @GuardedBy("lock")
    private boolean reaches(String source, String target) {
        Set<String> seen = new HashSet<>();
        Deque<String> left = new ArrayDeque<>(List.of(source));
        while (!left.isEmpty()) {
            String next = left.pop();
            if (next.equals(target)) {
                return true;
            }
            if (seen.add(next)) {
                for (Requested load : requested.getOrDefault(next, List.of())) {
                    if (load.isAwaited().getAsBoolean()) {
                        left.add(load.model());
                    }
                }
            }
        }
        return false;
    }
}
