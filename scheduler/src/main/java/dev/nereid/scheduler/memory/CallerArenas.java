package dev.nereid.scheduler.memory;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Collections;
import java.util.Set;
import java.util.WeakHashMap;

/**
 * The arenas of models and programs, whose memory they have passed in requests. They may close them at any time, so that
 * the server never reads that memory past its arena. Static functions only; safe for use by any thread.
 *
 * <p>An arena is known as long as memory of it is reachable.
 */
public final class CallerArenas {
    private static final MemorySegment.Scope GLOBAL = Arena.global().scope();

    private static final Set<MemorySegment.Scope> SCOPES =
            Collections.synchronizedSet(Collections.newSetFromMap(new WeakHashMap<>()));

    /** Whether there was ever one. */
    private static volatile boolean used;

    private CallerArenas() {}

    /**
     * Adds the arena of memory that does not belong to the server.
     *
     * @param memory the memory of a caller
     */
    public static void add(MemorySegment memory) {
        if (memory.isNative() && !memory.scope().equals(GLOBAL)) {
            SCOPES.add(memory.scope());
            used = true;
        }
    }

    /**
     * Returns whether the arena of a memory was added.
     *
     * @param memory any memory
     */
    public static boolean contain(MemorySegment memory) {
        return used && SCOPES.contains(memory.scope());
    }
}
