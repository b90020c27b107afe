package dev.nereid.testkit;

import dev.nereid.api.InferenceException;
import dev.nereid.api.memory.DeviceMemory;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.api.memory.TensorMemory;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.MemoryPlace;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Tensor memory that detects leaks, double closes and use after close. Safe for use by any thread.
 *
 * <p>Nothing is pooled: each buffer is a separate arena, so that reading or writing it after its close throws. New
 * memory is filled with garbage. The second close of a buffer throws and is recorded, in case the exception is caught
 * on the way; {@link #close()} fails if there was one, or if a buffer is open, and reports where it was allocated. To
 * check every test:
 *
 * {@snippet :
 * @AutoClose
 * private final LeakCheckingMemory memory = new LeakCheckingMemory();
 * }
 */
public final class LeakCheckingMemory implements TensorMemory, AutoCloseable {
    private static final long ALIGNMENT = 64;
    private static final byte GARBAGE = (byte) 0xA5;

    private final long capacity;
    private final Map<MemoryPlace, FakeDeviceMemory> devices = new HashMap<>();
    private final AtomicLong pinnedLeft = new AtomicLong();
    private final AtomicLong bytesInUse = new AtomicLong();
    private final AtomicLong maxBytesRequested = new AtomicLong();
    private final Set<CheckedBuffer> open = ConcurrentHashMap.newKeySet();
    private final Queue<Throwable> closedTwice = new ConcurrentLinkedQueue<>();

    /** Creates unlimited memory. */
    public LeakCheckingMemory() {
        this(Long.MAX_VALUE);
    }

    /**
     * Creates limited memory.
     *
     * @param capacity the limit on bytes in use
     */
    public LeakCheckingMemory(long capacity) {
        this.capacity = capacity;
    }

    /** Creates unlimited memory beside that of devices, which is checked with it. */
    public LeakCheckingMemory(FakeDeviceMemory... memory) {
        this(Long.MAX_VALUE, memory);
    }

    /**
     * Creates limited memory beside that of devices, which is checked with it.
     *
     * @param capacity the limit on bytes in use on the host
     */
    public LeakCheckingMemory(long capacity, FakeDeviceMemory... memory) {
        this(capacity);
        for (FakeDeviceMemory device : memory) {
            devices.put(device.place(), device);
        }
    }

    /**
     * Adds pinned memory, which is ordinary memory with another place.
     *
     * @param byteSize the bytes that may be pinned at a time
     */
    public LeakCheckingMemory withPinned(long byteSize) {
        pinnedLeft.addAndGet(byteSize);
        return this;
    }

    @Override
    public Optional<TensorBuffer> allocatePinned(long byteSize) {
        long before = pinnedLeft.getAndUpdate(left -> left >= byteSize ? left - byteSize : left);
        if (before < byteSize || before == 0) {
            return Optional.empty();
        }
        return Optional.of(onHost(byteSize, new MemoryPlace(MemoryPlace.Kind.PINNED, 0)));
    }

    @Override
    public Optional<DeviceMemory> device(MemoryPlace place) {
        return Optional.ofNullable(devices.get(place));
    }

    @Override
    public TensorBuffer allocate(long byteSize) {
        return onHost(byteSize, MemoryPlace.HOST);
    }

    private TensorBuffer onHost(long byteSize, MemoryPlace place) {
        maxBytesRequested.accumulateAndGet(bytesInUse.get() + byteSize, Math::max);
        if (byteSize > capacity - bytesInUse.get()) {
            throw new InferenceException(
                    ErrorCode.UNAVAILABLE,
                    "out of memory: " + byteSize + " bytes wanted, " + bytesInUse + " of " + capacity + " in use");
        }
        CheckedBuffer buffer = new CheckedBuffer(byteSize, place);
        open.add(buffer);
        bytesInUse.addAndGet(byteSize);
        return buffer;
    }

    @Override
    public void reserveBytes(long byteSize) {
        if (byteSize > capacity - bytesInUse.get()) {
            throw new InferenceException(
                    ErrorCode.UNAVAILABLE,
                    "out of memory: " + byteSize + " bytes wanted, " + bytesInUse + " of " + capacity + " in use");
        }
        bytesInUse.addAndGet(byteSize);
    }

    @Override
    public void releaseBytes(long byteSize) {
        bytesInUse.addAndGet(-byteSize);
    }

    @Override
    public long bytesInUse() {
        return bytesInUse.get();
    }

    /**
     * Returns the maximum of memory in use together with the requested size. The requested size counts whether or not
     * it was available.
     */
    public long maxBytesRequested() {
        return maxBytesRequested.get();
    }

    /**
     * Returns the number of open buffers, including buffers of size 0.
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
        devices.values().forEach(FakeDeviceMemory::close);
        if (open.isEmpty() && closedTwice.isEmpty()) {
            return;
        }
        AssertionError failure = new AssertionError(
                "buffers not closed: " + open.size() + ", closed twice: " + closedTwice.size() + " (expected: none)");
        open.forEach(buffer -> failure.addSuppressed(buffer.allocated));
        closedTwice.forEach(failure::addSuppressed);
        throw failure;
    }

    /** A buffer with a separate arena. Safe for use by any thread. */
    private final class CheckedBuffer implements TensorBuffer {
        private final Arena arena = Arena.ofShared();
        private final AtomicBoolean closed = new AtomicBoolean();
        private final MemorySegment segment;
        private final Throwable allocated;

        private final MemoryPlace place;

        CheckedBuffer(long byteSize, MemoryPlace place) {
            this.place = place;
            segment = arena.allocate(byteSize, ALIGNMENT).fill(GARBAGE);
            allocated = new Throwable("buffer of " + byteSize + " bytes allocated here and not closed");
        }

        @Override
        public MemorySegment segment() {
            return segment;
        }

        @Override
        public MemoryPlace place() {
            return place;
        }

        @Override
        public void close() {
            if (!closed.compareAndSet(false, true)) {
                IllegalStateException twice = new IllegalStateException("buffer: closed twice (expected: once)");
                closedTwice.add(twice);
                throw twice;
            }
            open.remove(this);
            bytesInUse.addAndGet(-segment.byteSize());
            if (place.kind() == MemoryPlace.Kind.PINNED) {
                pinnedLeft.addAndGet(segment.byteSize());
            }
            arena.close();
        }
    }
}
