package dev.nereid.walkthrough;

import dev.nereid.spi.Fence;
import java.lang.foreign.MemorySegment;

/** The calls of a native library that the backends need. All work runs later, in the order of the calls. */
interface Gpu {
    /** Starts a kernel that reads token numbers and writes vectors. */
    void embed(MemorySegment tokens, MemorySegment vectors);

    /** Starts a kernel that reads vectors and writes a score for each. */
    void score(MemorySegment vectors, MemorySegment scores);

    /** Lets later work wait for an event, which may be one of another stream. Returns at once. */
    void await(long event);

    /** Records an event behind the work so far. */
    Fence record();
}
