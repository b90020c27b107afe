package dev.nereid.spi;

import static java.util.Objects.requireNonNull;

/**
 * Memory usage of a model in one location. Immutable.
 *
 * @param place where
 * @param byteSize how much, in bytes; 0 or more
 * @since 1.0
 */
public record MemoryUsage(MemoryPlace place, long byteSize) {
    /** Checks the components. */
    public MemoryUsage {
        requireNonNull(place, "place");
        if (byteSize < 0) {
            throw new IllegalArgumentException("byteSize: " + byteSize + " (expected: >= 0)");
        }
    }
}
