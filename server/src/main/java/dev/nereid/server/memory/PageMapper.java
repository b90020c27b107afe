package dev.nereid.server.memory;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.Optional;

/**
 * Maps address space that the kernel fills with zeroed pages on first access. Immutable; safe for use by any thread.
 *
 * <p>An arena clears all that it allocates at once, on the calling thread; a mapping costs microseconds, whatever its
 * size. Linux only; elsewhere there are none.
 */
final class PageMapper {
    /** Holds the linked functions. Linking takes up to a third of a second on a cold JVM. */
    private static final class Linked {
        private static final Optional<PageMapper> PAGES = link();
    }

    private static final int READ_AND_WRITE = 3;
    /** MAP_PRIVATE, MAP_ANONYMOUS and MAP_NORESERVE of Linux. */
    private static final int PRIVATE_ANONYMOUS = 0x2 | 0x20 | 0x4000;

    private static final int NO_FILE = -1;
    private static final int NO_HUGE_PAGES = 15;

    /** A function that only Linux has; the constants of other systems differ. */
    private static final String LINUX_ONLY = "mremap";

    private final MethodHandle map;
    private final MethodHandle unmap;
    private final MethodHandle advise;

    private PageMapper(MethodHandle map, MethodHandle unmap, MethodHandle advise) {
        this.map = map;
        this.unmap = unmap;
        this.advise = advise;
    }

    /** Returns the pages of the system, if it supports them. The first access is slow. */
    static Optional<PageMapper> system() {
        return Linked.PAGES;
    }

    /**
     * Maps address space.
     *
     * @param arena unmaps it when it is closed
     * @return the memory, zeroed
     * @throws OutOfMemoryError if the system has none left
     */
    @SuppressWarnings("restricted")
    MemorySegment map(long byteSize, Arena arena) {
        long address;
        try {
            address = (long) map.invokeExact(0L, byteSize, READ_AND_WRITE, PRIVATE_ANONYMOUS, NO_FILE, 0L);
        } catch (Throwable e) {
            throw new IllegalStateException("mmap: not called", e);
        }
        if (address == -1) {
            throw new OutOfMemoryError("mmap of " + byteSize + " bytes");
        }
        return MemorySegment.ofAddress(address).reinterpret(byteSize, arena, this::unmap);
    }

    /** Disables huge pages for a mapping. A huge page takes 2 MiB for a single used byte. */
    void keepSmall(MemorySegment mapped) {
        try {
            int ignored = (int) advise.invokeExact(mapped.address(), mapped.byteSize(), NO_HUGE_PAGES);
        } catch (Throwable e) {
            throw new IllegalStateException("madvise: not called", e);
        }
    }

    private void unmap(MemorySegment mapped) {
        try {
            int ignored = (int) unmap.invokeExact(mapped.address(), mapped.byteSize());
        } catch (Throwable e) {
            throw new IllegalStateException("munmap: not called", e);
        }
    }

    @SuppressWarnings("restricted")
    private static Optional<PageMapper> link() {
        try {
            Linker linker = Linker.nativeLinker();
            SymbolLookup symbols = linker.defaultLookup();
            if (symbols.find(LINUX_ONLY).isEmpty()) {
                return Optional.empty();
            }
            FunctionDescriptor map = FunctionDescriptor.of(
                    ValueLayout.JAVA_LONG,
                    ValueLayout.JAVA_LONG,
                    ValueLayout.JAVA_LONG,
                    ValueLayout.JAVA_INT,
                    ValueLayout.JAVA_INT,
                    ValueLayout.JAVA_INT,
                    ValueLayout.JAVA_LONG);
            FunctionDescriptor unmap =
                    FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG);
            FunctionDescriptor advise = FunctionDescriptor.of(
                    ValueLayout.JAVA_INT, ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG, ValueLayout.JAVA_INT);
            return Optional.of(new PageMapper(
                    linker.downcallHandle(symbols.findOrThrow("mmap"), map),
                    linker.downcallHandle(symbols.findOrThrow("munmap"), unmap),
                    linker.downcallHandle(symbols.findOrThrow("madvise"), advise)));
        } catch (UnsupportedOperationException | IllegalCallerException e) {
            return Optional.empty(); // no native access for this program
        }
    }
}
