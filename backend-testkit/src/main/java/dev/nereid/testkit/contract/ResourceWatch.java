package dev.nereid.testkit.contract;

import com.sun.management.UnixOperatingSystemMXBean;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SegmentAllocator;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.management.ManagementFactory;
import java.util.Optional;

/**
 * Threads, open files and native memory of the process at one moment. Immutable.
 *
 * @param threads the number of threads
 * @param files the number of open files; 0 where that is not known
 * @param nativeBytes the bytes that {@code malloc} gave out and {@code free} did not get; 0 where that is not known
 */
record ResourceWatch(int threads, long files, long nativeBytes) {
    private static final int FIELDS = 10;
    private static final int IN_MAPPINGS = 4;
    private static final int IN_ARENAS = 7;
    private static final Optional<MethodHandle> MALLINFO = mallinfo();

    static ResourceWatch now() {
        System.gc();
        return new ResourceWatch(
                ManagementFactory.getThreadMXBean().getThreadCount(), openFiles(), allocatedByMalloc());
    }

    private static long openFiles() {
        return ManagementFactory.getOperatingSystemMXBean() instanceof UnixOperatingSystemMXBean system
                ? system.getOpenFileDescriptorCount()
                : 0;
    }

    private static long allocatedByMalloc() {
        if (MALLINFO.isEmpty()) {
            return 0;
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment info = (MemorySegment) MALLINFO.get().invokeExact((SegmentAllocator) arena);
            return info.getAtIndex(ValueLayout.JAVA_LONG, IN_MAPPINGS)
                    + info.getAtIndex(ValueLayout.JAVA_LONG, IN_ARENAS);
        } catch (Throwable e) {
            throw new IllegalStateException("mallinfo2 throws nothing", e);
        }
    }

    /** Finds the function of glibc; others do not say how much is in use. */
    @SuppressWarnings("restricted")
    private static Optional<MethodHandle> mallinfo() {
        Linker linker = Linker.nativeLinker();
        MemoryLayout info = MemoryLayout.structLayout(MemoryLayout.sequenceLayout(FIELDS, ValueLayout.JAVA_LONG));
        return linker.defaultLookup()
                .find("mallinfo2")
                .map(function -> linker.downcallHandle(function, FunctionDescriptor.of(info)));
    }
}
