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
import java.util.OptionalLong;

/**
 * Threads, open files and native memory of the process at one moment. Immutable.
 *
 * @param files the number of open files; empty where the system does not say it
 * @param nativeBytes the bytes that {@code malloc} gave out and {@code free} did not get; empty without glibc
 */
record ResourceWatch(int threads, OptionalLong files, OptionalLong nativeBytes) {
    private static final int FIELDS = 10;
    private static final int IN_MAPPINGS = 4;
    private static final int IN_ARENAS = 7;
    private static final Optional<MethodHandle> MALLINFO = mallinfo();

    static ResourceWatch now() {
        System.gc();
        return new ResourceWatch(
                ManagementFactory.getThreadMXBean().getThreadCount(), openFiles(), allocatedByMalloc());
    }

    private static OptionalLong openFiles() {
        return ManagementFactory.getOperatingSystemMXBean() instanceof UnixOperatingSystemMXBean system
                ? OptionalLong.of(system.getOpenFileDescriptorCount())
                : OptionalLong.empty();
    }

    private static OptionalLong allocatedByMalloc() {
        if (MALLINFO.isEmpty()) {
            return OptionalLong.empty();
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment info = (MemorySegment) MALLINFO.get().invokeExact((SegmentAllocator) arena);
            return OptionalLong.of(info.getAtIndex(ValueLayout.JAVA_LONG, IN_MAPPINGS)
                    + info.getAtIndex(ValueLayout.JAVA_LONG, IN_ARENAS));
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
