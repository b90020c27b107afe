package dev.nereid.benchmarks.gpu;

import dev.nereid.cuda.CudaDriver;
import dev.nereid.cuda.EventFence;
import dev.nereid.cuda.EventPool;
import dev.nereid.cuda.GpuContext;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.ArrayDeque;

/**
 * One stream with a kernel, and memory for several launches of it in flight: the bare loop that the server is compared
 * with. Confined to one thread.
 */
final class KernelSlots implements AutoCloseable {
    private static final int THREADS_OF_BLOCK = 256;
    private static final int PARAMETERS = 4;

    private final GpuContext gpu;
    private final EventPool events;
    private final Arena arena = Arena.ofShared();
    private final long kernel;
    private final long nanos;
    private final int count;
    private final long stream;
    private final long pinned;
    private final long device;
    private final MemorySegment values;
    private final MemorySegment addresses;
    private final ArrayDeque<EventFence> inFlight = new ArrayDeque<>();
    private final int slots;
    private int next;

    /**
     * Allocates memory for {@code slots} launches in flight, each with {@code count} numbers that go in and out.
     *
     * @param kernel with the parameters of {@code kernels.ptx}
     */
    @SuppressWarnings("restricted")
    KernelSlots(GpuContext gpu, EventPool events, long kernel, int count, long nanos, int slots) {
        this.gpu = gpu;
        this.events = events;
        this.kernel = kernel;
        this.count = count;
        this.nanos = nanos;
        this.slots = slots;
        stream = gpu.call(CudaDriver::createStream);
        pinned = gpu.call(driver -> driver.allocateHost(2 * byteSize() * slots));
        device = gpu.call(driver -> driver.allocate(2 * byteSize() * slots));
        values = arena.allocate(ValueLayout.JAVA_LONG, (long) PARAMETERS * slots);
        addresses = arena.allocate(ValueLayout.JAVA_LONG, (long) PARAMETERS * slots);
        MemorySegment host = host();
        for (long i = 0; i < host.byteSize() / Float.BYTES; i++) {
            host.setAtIndex(ValueLayout.JAVA_FLOAT, i, (float) i);
        }
    }

    private long byteSize() {
        return (long) count * Float.BYTES;
    }

    @SuppressWarnings("restricted")
    private MemorySegment host() {
        return MemorySegment.ofAddress(pinned).reinterpret(2 * byteSize() * slots);
    }

    /** Launches once, after the end of the launch that used the same memory before. */
    void launch() {
        if (inFlight.size() == slots) {
            awaitOldest();
        }
        append();
        inFlight.add(events.record(stream));
    }

    /** Appends the copies and the kernel of the next launch, of which nobody learns the end. */
    void append() {
        int slot = next++ % slots;
        long at = 2 * byteSize() * slot;
        for (int i = 0; i < PARAMETERS; i++) {
            long index = (long) PARAMETERS * slot + i;
            long value = i == 0 ? device + at : i == 1 ? device + at + byteSize() : i == 2 ? count : nanos;
            values.setAtIndex(ValueLayout.JAVA_LONG, index, value);
            addresses.setAtIndex(ValueLayout.JAVA_LONG, index, values.address() + index * Long.BYTES);
        }
        gpu.run(driver -> {
            driver.copyFromHost(pinned + at, device + at, byteSize(), stream);
            driver.launch(
                    kernel,
                    (count + THREADS_OF_BLOCK - 1) / THREADS_OF_BLOCK,
                    THREADS_OF_BLOCK,
                    stream,
                    addresses.address() + (long) PARAMETERS * slot * Long.BYTES);
            driver.copyToHost(device + at + byteSize(), pinned + at + byteSize(), byteSize(), stream);
        });
    }

    private void awaitOldest() {
        EventFence fence = inFlight.remove();
        try {
            boolean ignored = fence.await(Duration.ofMinutes(1));
        } finally {
            fence.release();
        }
    }

    void awaitAll() {
        while (!inFlight.isEmpty()) {
            awaitOldest();
        }
    }

    /** Returns the largest difference of an output from its input. */
    float greatestDifference() {
        MemorySegment host = host();
        float greatest = 0;
        for (int slot = 0; slot < slots; slot++) {
            long first = 2L * count * slot;
            for (int i = 0; i < count; i++) {
                float in = host.getAtIndex(ValueLayout.JAVA_FLOAT, first + i);
                float out = host.getAtIndex(ValueLayout.JAVA_FLOAT, first + count + i);
                greatest = Math.max(greatest, Math.abs(out - in));
            }
        }
        return greatest;
    }

    long stream() {
        return stream;
    }

    @Override
    public void close() {
        awaitAll();
        gpu.release(driver -> {
            driver.destroyStream(stream);
            driver.freeHost(pinned);
            driver.free(device);
        });
        arena.close();
    }
}
