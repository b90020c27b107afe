package dev.nereid.testkit;

import dev.nereid.api.InferenceException;
import dev.nereid.api.memory.DeviceMemory;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Map;
import java.util.Optional;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Memory of a device that does not exist. Safe for use by any thread.
 *
 * <p>Its segments belong to a closed arena, so that Java code that reads or writes one gets an
 * {@link IllegalStateException}; their content lies elsewhere, found by the address. It counts the copies, and detects
 * leaks and double closes as {@link LeakCheckingMemory} does, with which it is used:
 *
 * {@snippet :
 * FakeDeviceMemory device = new FakeDeviceMemory(new MemoryPlace(MemoryPlace.Kind.GPU, 0));
 * LeakCheckingMemory memory = new LeakCheckingMemory(device);
 * }
 */
public final class FakeDeviceMemory implements DeviceMemory, AutoCloseable {
    private static final long ALIGNMENT = 256;

    private final MemoryPlace place;

    private volatile Optional<String> failure = Optional.empty();
    private volatile Use use = new Use(0, Long.MAX_VALUE);

    private volatile boolean exhausted;

    /** The open buffers by their addresses. */
    private final ConcurrentSkipListMap<Long, Buffer> open = new ConcurrentSkipListMap<>();

    private final Queue<Throwable> closedTwice = new ConcurrentLinkedQueue<>();
    private final AtomicInteger copiesToHost = new AtomicInteger();
    private final AtomicInteger copiesFromHost = new AtomicInteger();
    private final AtomicInteger copies = new AtomicInteger();

    /**
     * Creates the memory of a device.
     *
     * @param place where it lies
     */
    public FakeDeviceMemory(MemoryPlace place) {
        if (place.isHost()) {
            throw new IllegalArgumentException("place: " + place + " (expected: of a device)");
        }
        this.place = place;
    }

    @Override
    public MemoryPlace place() {
        return place;
    }

    @Override
    public Optional<String> failure() {
        return failure;
    }

    /**
     * Makes the device fail.
     *
     * @param reason the result of {@link #failure} from now on
     */
    public void fail(String reason) {
        failure = Optional.of(reason);
    }

    /** Takes all remaining memory. */
    public void exhaust() {
        exhausted = true;
    }

    @Override
    public Use use() {
        return use;
    }

    /** Sets how much of the memory of the device is in use. */
    public void setUse(long usedBytes, long totalBytes) {
        use = new Use(usedBytes, totalBytes);
    }

    @Override
    public TensorBuffer allocate(long byteSize) {
        if (exhausted) {
            throw new InferenceException(
                    ErrorCode.UNAVAILABLE, place + ": " + byteSize + " bytes (expected: none, by the test)");
        }
        Buffer buffer = new Buffer(byteSize);
        open.put(buffer.segment.address(), buffer);
        return buffer;
    }

    /**
     * Creates a tensor of numbers.
     *
     * @param buffer a buffer of exactly their size
     * @return a tensor in this place
     */
    public Tensor floats(TensorBuffer buffer, Shape shape, float... numbers) {
        MemorySegment content = MemorySegment.ofArray(numbers);
        write(content, buffer.segment());
        return Tensor.of(DataType.FP32, shape, buffer.segment(), place);
    }

    /**
     * Writes memory, as the work of the device does. Counts no copy.
     *
     * @param content the bytes
     * @param target memory in this place of the same size
     */
    public void write(MemorySegment content, MemorySegment target) {
        content(target).copyFrom(content);
    }

    /**
     * Reads numbers, as the work of the device does. Counts no copy.
     *
     * @param from memory in this place
     */
    public float[] floats(MemorySegment from) {
        return content(from).toArray(ValueLayout.JAVA_FLOAT_UNALIGNED);
    }

    @Override
    public void copyToHost(MemorySegment from, MemorySegment to) {
        checkSizes(from, to);
        copiesToHost.incrementAndGet();
        to.copyFrom(content(from));
    }

    @Override
    public void copyFromHost(MemorySegment from, MemorySegment to) {
        checkSizes(from, to);
        copiesFromHost.incrementAndGet();
        content(to).copyFrom(from);
    }

    @Override
    public void copy(MemorySegment from, MemorySegment to) {
        checkSizes(from, to);
        copies.incrementAndGet();
        content(to).copyFrom(content(from));
    }

    @Override
    public void clear(MemorySegment memory) {
        content(memory).fill((byte) 0);
    }

    @Override
    public boolean copyFrom(DeviceMemory source, MemorySegment from, MemorySegment to) {
        checkSizes(from, to);
        if (!(source instanceof FakeDeviceMemory other)) {
            return false;
        }
        copies.incrementAndGet();
        content(to).copyFrom(other.content(from));
        return true;
    }

    private static void checkSizes(MemorySegment from, MemorySegment to) {
        if (from.byteSize() != to.byteSize()) {
            throw new IllegalArgumentException(
                    "to: " + to.byteSize() + " bytes (expected: " + from.byteSize() + ", the size of the source)");
        }
    }

    /** Returns the content of memory in this place. */
    private MemorySegment content(MemorySegment memory) {
        Map.Entry<Long, Buffer> entry = open.floorEntry(memory.address());
        if (entry == null) {
            throw new IllegalStateException("memory: not in " + place + " (expected: of an open buffer)");
        }
        long offset = memory.address() - entry.getKey();
        MemorySegment content = entry.getValue().content;
        if (offset + memory.byteSize() > content.byteSize()) {
            throw new IllegalStateException("memory: not in " + place + " (expected: of an open buffer)");
        }
        return content.asSlice(offset, memory.byteSize());
    }

    /**
     * Returns the number of copies to the host.
     *
     * @return the number so far
     */
    public int copiesToHost() {
        return copiesToHost.get();
    }

    /**
     * Returns the number of copies from the host.
     *
     * @return the number so far
     */
    public int copiesFromHost() {
        return copiesFromHost.get();
    }

    /**
     * Returns the number of copies within this place, and of those from another device to it.
     *
     * @return the number so far
     */
    public int copies() {
        return copies.get();
    }

    /**
     * Returns the number of open buffers.
     *
     * @return the number at this moment
     */
    public int buffersInUse() {
        return open.size();
    }

    /**
     * Fails if a buffer is open or was closed twice. May be called at any time and more than once.
     *
     * @throws AssertionError with the places where the buffers were allocated or closed as suppressed exceptions
     */
    @Override
    public void close() {
        if (open.isEmpty() && closedTwice.isEmpty()) {
            return;
        }
        AssertionError failure = new AssertionError("buffers in " + place + " not closed: " + open.size()
                + ", closed twice: " + closedTwice.size() + " (expected: none)");
        open.values().forEach(buffer -> failure.addSuppressed(buffer.allocated));
        closedTwice.forEach(failure::addSuppressed);
        throw failure;
    }

    /** A buffer with a segment that Java code cannot access. Safe for use by any thread. */
    private final class Buffer implements TensorBuffer {
        private final Arena arena = Arena.ofShared();
        private final AtomicBoolean closed = new AtomicBoolean();
        private final Throwable allocated;

        /** The bytes; they keep the addresses of the buffer from other use. */
        private final MemorySegment content;

        private final MemorySegment segment;

        @SuppressWarnings("restricted") // the view has the size of the memory
        Buffer(long byteSize) {
            content = arena.allocate(Math.max(1, byteSize), ALIGNMENT).asSlice(0, byteSize);
            try (Arena inaccessible = Arena.ofShared()) {
                segment = content.reinterpret(byteSize, inaccessible, null);
            }
            allocated = new Throwable("device buffer of " + byteSize + " bytes allocated here and not closed");
        }

        @Override
        public MemoryPlace place() {
            return place;
        }

        @Override
        public MemorySegment segment() {
            return segment;
        }

        @Override
        public void close() {
            if (!closed.compareAndSet(false, true)) {
                IllegalStateException twice = new IllegalStateException("device buffer: closed twice (expected: once)");
                closedTwice.add(twice);
                throw twice;
            }
            open.remove(segment.address());
            arena.close();
        }
    }
}
