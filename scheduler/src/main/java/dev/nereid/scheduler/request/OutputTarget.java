package dev.nereid.scheduler.request;

import static java.util.Objects.requireNonNull;

import java.lang.foreign.MemorySegment;

/**
 * Client memory for one output. Immutable as a view of the memory.
 *
 * @param output the name of the output
 * @param memory memory of the client, to be written from its start; stays valid until the memory of the request is
 *     released
 */
public record OutputTarget(String output, MemorySegment memory) {
    /** Checks the components. */
    public OutputTarget {
        requireNonNull(output, "output");
        requireNonNull(memory, "memory");
    }
}
