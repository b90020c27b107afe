package dev.nereid.http.infer;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/** A list of distinct names, in order. Confined to the thread that reads a request. */
final class DistinctNames {
    /** The number of names up to which comparing is cheaper than hashing. */
    private static final int FEW = 8;

    private final List<String> names = new ArrayList<>(2);
    private final Set<String> hashed = new HashSet<>(0);

    /** Adds a name; returns {@code false} if it is a duplicate. */
    boolean add(String name) {
        if (names.size() < FEW ? names.contains(name) : isHashed(name)) {
            return false;
        }
        names.add(name);
        return true;
    }

    private boolean isHashed(String name) {
        if (hashed.isEmpty()) {
            hashed.addAll(names);
        }
        return !hashed.add(name);
    }
}
