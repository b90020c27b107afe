package dev.nereid.server.memory;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Optional;

/**
 * A memory mapping in an arena, of which a part is counted as held. Confined to its holder, or guarded by the lock of
 * the class in which it lies idle.
 *
 * <p>Nothing behind the counted part was ever touched, so it holds zeros and takes no memory of the machine.
 */
final class Mapping {
    private final Arena arena;
    private final MemorySegment memory;
    private long counted;

    private Mapping(Arena arena, MemorySegment memory) {
        this.arena = arena;
        this.memory = memory;
    }

    /**
     * Takes memory from the system.
     *
     * @param counted how much of it is counted
     * @param slowly whether the rest is filled bit by bit, if at all
     */
    static Mapping create(Optional<PageMapper> pages, long byteSize, long counted, boolean slowly) {
        Arena arena = Arena.ofShared();
        boolean created = false;
        try {
            Mapping mapping = new Mapping(
                    arena,
                    pages.isPresent() && byteSize > 0
                            ? pages.get().map(byteSize, arena)
                            : arena.allocate(byteSize, SizeClasses.ALIGNMENT));
            if (slowly) {
                pages.ifPresent(present -> present.keepSmall(mapping.memory));
            }
            mapping.counted = counted;
            created = true;
            return mapping;
        } finally {
            if (!created) {
                arena.close();
            }
        }
    }

    MemorySegment slice(long byteSize) {
        return memory.asSlice(0, byteSize);
    }

    long counted() {
        return counted;
    }

    void count(long bytes) {
        counted = bytes;
    }

    void close() {
        arena.close();
    }
}
