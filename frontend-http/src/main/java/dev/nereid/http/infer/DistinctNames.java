package dev.nereid.http.infer;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/** A list of distinct names, in order. Confined to the thread that reads a request. */
final class DistinctNames {
    /** Up to this many names, comparing is cheaper than hashing. */
    private static final int FEW = 8;

    private final List<String> names = new ArrayList<>(2);
    private final Set<String> many = new HashSet<>(0);

    /** Adds a name, or says that it is there already. */
    boolean add(String name) {
        if (names.size() < FEW ? names.contains(name) : isOneOfMany(name)) {
            return false;
        }
        names.add(name);
        return true;
    }

    /** Returns the names in the order they were added. */
    List<String> list() {
        return names;
    }

    private boolean isOneOfMany(String name) {
        if (many.isEmpty()) {
            many.addAll(names);
        }
        return !many.add(name);
    }
}
