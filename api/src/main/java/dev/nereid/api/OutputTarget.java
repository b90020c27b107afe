package dev.nereid.api;

import static java.util.Objects.requireNonNull;

import dev.nereid.spi.MemoryPlace;
import java.lang.foreign.MemorySegment;

/**
 * Memory of the caller to which an output is written, from its start. Immutable as a view of that memory.
 *
 * @param memory the memory; an address and a size alone for memory of a device
 * @param place where it lies
 */
public record OutputTarget(MemorySegment memory, MemoryPlace place) {
    /** Checks the components. */
    public OutputTarget {
        requireNonNull(memory, "memory");
        requireNonNull(place, "place");
    }

    /**
     * Creates a target in memory of the host.
     *
     * @param memory the memory to write an output to
     * @return the target
     */
    public static OutputTarget host(MemorySegment memory) {
        return new OutputTarget(memory, MemoryPlace.HOST);
    }
}
