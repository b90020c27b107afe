package dev.nereid.cuda.memory;

import dev.nereid.api.InferenceException;
import dev.nereid.api.memory.DeviceMemory;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.cuda.CudaDriver;
import dev.nereid.cuda.EventFence;
import dev.nereid.cuda.EventPool;
import dev.nereid.cuda.GpuContext;
import dev.nereid.cuda.GpuException;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.MemoryPlace;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;

/**
 * The memory of one GPU for tensors: taken from the driver once and divided here, so that no request waits for the
 * driver. Safe for use by any thread.
 *
 * <p>Its copies have separate streams, one for each direction, so that a long copy does not delay the other direction.
 * Each method returns when its stream has reached its end.
 */
public final class GpuMemory implements DeviceMemory, AutoCloseable {
    private static final int STREAMS = 3;
    private static final Duration FOREVER = Duration.ofSeconds(Long.MAX_VALUE);

    private final GpuContext gpu;
    private final EventPool events;
    private final MemoryPlace place;
    private final MemoryBlocks blocks;
    private final long fromHost;
    private final long toHost;
    private final long within;

    /** All of it, of a closed arena: a view that Java code cannot read or write. */
    private final MemorySegment memory;

    private final AtomicBoolean closed = new AtomicBoolean();

    /** Takes memory of the GPU of {@code events}; 0 bytes to copy other memory alone. Fails if the GPU has less. */
    public GpuMemory(GpuContext gpu, EventPool events, long byteSize) {
        this.gpu = gpu;
        this.events = events;
        place = new MemoryPlace(MemoryPlace.Kind.GPU, gpu.gpu());
        blocks = new MemoryBlocks(byteSize);
        List<Long> streams = new ArrayList<>();
        try {
            for (int i = 0; i < STREAMS; i++) {
                streams.add(gpu.call(CudaDriver::createStream));
            }
            memory = byteSize == 0 ? MemorySegment.NULL : view(gpu.call(driver -> driver.allocate(byteSize)), byteSize);
        } catch (GpuException e) {
            gpu.release(driver -> streams.forEach(driver::destroyStream));
            throw failed(e);
        }
        fromHost = streams.get(0);
        toHost = streams.get(1);
        within = streams.get(2);
    }

    /** Returns memory at an address of a device, as Java code may see it: a segment of a closed arena. */
    @SuppressWarnings("restricted") // the view has the size of the memory
    public static MemorySegment view(long address, long byteSize) {
        try (Arena inaccessible = Arena.ofShared()) {
            return MemorySegment.ofAddress(address).reinterpret(byteSize, inaccessible, null);
        }
    }

    @Override
    public MemoryPlace place() {
        return place;
    }

    @Override
    public TensorBuffer allocate(long byteSize) {
        long offset = blocks.allocate(byteSize)
                .orElseThrow(() -> new InferenceException(
                        ErrorCode.UNAVAILABLE,
                        "no memory for a tensor of %d bytes on GPU %d: %d of %d bytes are in use"
                                .formatted(byteSize, gpu.gpu(), blocks.bytesInUse(), memory.byteSize())));
        MemorySegment segment = memory.asSlice(offset, byteSize);
        try {
            clear(segment);
        } catch (RuntimeException e) {
            blocks.free(offset);
            throw e;
        }
        return new MemoryBlock("device buffer", segment, place, blocks, offset);
    }

    @Override
    public void copyToHost(MemorySegment from, MemorySegment to) {
        checkSizes(from, to);
        if (to.isNative()) {
            finish(from, toHost, driver -> driver.copyToHost(from.address(), to.address(), from.byteSize(), toHost));
            return;
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment copy = arena.allocate(from.byteSize());
            copyToHost(from, copy);
            to.copyFrom(copy);
        }
    }

    @Override
    public void copyFromHost(MemorySegment from, MemorySegment to) {
        checkSizes(from, to);
        if (from.isNative()) {
            finish(
                    from,
                    fromHost,
                    driver -> driver.copyFromHost(from.address(), to.address(), from.byteSize(), fromHost));
            return;
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment copy = arena.allocate(from.byteSize());
            copyFromHost(copy.copyFrom(from), to);
        }
    }

    @Override
    public void copy(MemorySegment from, MemorySegment to) {
        checkSizes(from, to);
        finish(from, within, driver -> driver.copy(from.address(), to.address(), from.byteSize(), within));
    }

    @Override
    public Optional<String> failure() {
        return gpu.failure()
                .map(failure -> "GPU %d has failed: %s: restart the server".formatted(gpu.gpu(), failure.getMessage()));
    }

    @Override
    public Use use() {
        try {
            return gpu.call(driver -> {
                long total = driver.totalMemory(driver.device(gpu.gpu()));
                return new Use(total - driver.freeMemory(), total);
            });
        } catch (GpuException e) {
            throw failed(e);
        }
    }

    @Override
    public void clear(MemorySegment cleared) {
        finish(cleared, within, driver -> driver.fill(cleared.address(), (byte) 0, cleared.byteSize(), within));
    }

    @Override
    public boolean copyFrom(DeviceMemory source, MemorySegment from, MemorySegment to) {
        checkSizes(from, to);
        if (!(source instanceof GpuMemory other)) {
            return false;
        }
        finish(
                from,
                within,
                driver -> driver.copyPeer(
                        from.address(), other.gpu.handle(), to.address(), gpu.handle(), from.byteSize(), within));
        return true;
    }

    /** Returns the sizes of all open buffers together, with what their alignment adds. */
    public long bytesInUse() {
        return blocks.bytesInUse();
    }

    /** Gives the memory back to the driver; throws {@link IllegalStateException} if a buffer is open: it stays. */
    @Override
    public void close() {
        if (blocks.bytesInUse() > 0) {
            throw new IllegalStateException(
                    "memory of GPU " + gpu.gpu() + ": " + blocks.bytesInUse() + " bytes in use (expected: 0)");
        }
        if (closed.compareAndSet(false, true)) {
            gpu.release(driver -> {
                for (long stream : new long[] {fromHost, toHost, within}) {
                    driver.destroyStream(stream);
                }
                if (memory.byteSize() > 0) {
                    driver.free(memory.address());
                }
            });
        }
    }

    /** Appends work to a stream, unless it has nothing to do, and waits for its end. */
    private void finish(MemorySegment used, long stream, Consumer<CudaDriver> work) {
        if (used.byteSize() == 0) {
            return;
        }
        try {
            EventFence fence = events.recordAfter(work, stream);
            try {
                boolean ignored = fence.await(FOREVER);
            } finally {
                fence.release();
            }
        } catch (GpuException | BackendException e) {
            throw failed(e);
        }
    }

    private static InferenceException failed(Exception e) {
        return new InferenceException(ErrorCode.UNAVAILABLE, String.valueOf(e.getMessage()));
    }

    private static void checkSizes(MemorySegment from, MemorySegment to) {
        if (from.byteSize() != to.byteSize()) {
            throw new IllegalArgumentException(
                    "to: " + to.byteSize() + " bytes (expected: " + from.byteSize() + ", the size of the source)");
        }
    }
}
