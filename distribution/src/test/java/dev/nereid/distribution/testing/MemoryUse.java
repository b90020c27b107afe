package dev.nereid.distribution.testing;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.util.internal.PlatformDependent;
import java.io.IOException;
import java.lang.management.BufferPoolMXBean;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * The memory use of the process at one moment. Immutable.
 *
 * @param heap the reachable heap
 * @param netty the native memory of Netty's pools
 * @param buffers the memory of the JVM's own direct buffers
 * @param resident the resident memory of the process: the heap, with the size that the build sets, and all native
 *     memory
 */
public record MemoryUse(long heap, long netty, long buffers, long resident) {
    private static final Path STATUS = Path.of("/proc/self/status");

    /** Collects garbage and measures. */
    public static MemoryUse now() throws IOException {
        System.gc();
        System.gc(); // memory that the first collection finalized
        long buffers = ManagementFactory.getPlatformMXBeans(BufferPoolMXBean.class).stream()
                .filter(pool -> pool.getName().equals("direct"))
                .mapToLong(BufferPoolMXBean::getMemoryUsed)
                .sum();
        return new MemoryUse(
                ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed(),
                PlatformDependent.usedDirectMemory(),
                buffers,
                residentBytes());
    }

    /** Returns whether more is used than at an earlier moment, beyond an allowance for caches. */
    public boolean isAbove(MemoryUse earlier, long heapMargin, long nativeMargin) {
        return heap >= earlier.heap + heapMargin
                || netty >= earlier.netty + nativeMargin
                || buffers >= earlier.buffers + nativeMargin
                || resident >= earlier.resident + nativeMargin;
    }

    /** Fails if more is used than at an earlier moment, beyond an allowance for caches. */
    public void assertNotAbove(MemoryUse earlier, long heapMargin, long nativeMargin) {
        String both = "after " + this + ", before " + earlier;
        assertThat(heap).as("heap: " + both).isLessThan(earlier.heap + heapMargin);
        assertThat(netty).as("Netty: " + both).isLessThan(earlier.netty + nativeMargin);
        assertThat(buffers).as("direct buffers: " + both).isLessThan(earlier.buffers + nativeMargin);
        assertThat(resident).as("resident: " + both).isLessThan(earlier.resident + nativeMargin);
    }

    private static long residentBytes() throws IOException {
        if (!Files.exists(STATUS)) {
            return 0; // not Linux
        }
        return Files.readAllLines(STATUS).stream()
                .filter(line -> line.startsWith("VmRSS:"))
                .mapToLong(line -> Long.parseLong(line.replaceAll("\\D", "")) << 10)
                .sum();
    }
}
