package dev.nereid.testkit;

import dev.nereid.api.InferenceException;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.api.memory.TensorMemory;
import dev.nereid.spi.ErrorCode;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Tensor memory that detects leaks, double closes and use after close. Safe for use by any thread.
 *
 * <p>Nothing is pooled: each buffer is an arena of its own, so that reading or writing it after it was given back
 * throws. Fresh memory is filled with garbage. A buffer given back twice throws and is remembered, in case the
 * exception is caught on the way; {@link #close()} fails if there was one, or if a buffer was not given back, and tells
 * where it was taken. To have every test checked:
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
    private final AtomicLong bytesInUse = new AtomicLong();
    private final AtomicLong maxBytesRequested = new AtomicLong();
    private final Set<CheckedBuffer> open = ConcurrentHashMap.newKeySet();
    private final Queue<Throwable> closedTwice = new ConcurrentLinkedQueue<>();

    /** Creates memory that does not run out. */
    public LeakCheckingMemory() {
        this(Long.MAX_VALUE);
    }

    /**
     * Creates memory that runs out.
     *
     * @param capacity how many bytes can be handed out at a time
     */
    public LeakCheckingMemory(long capacity) {
        this.capacity = capacity;
    }

    @Override
    public TensorBuffer allocate(long byteSize) {
        maxBytesRequested.accumulateAndGet(bytesInUse.get() + byteSize, Math::max);
        if (byteSize > capacity - bytesInUse.get()) {
            throw new InferenceException(
                    ErrorCode.UNAVAILABLE,
                    "out of memory: " + byteSize + " bytes wanted, " + bytesInUse + " of " + capacity + " in use");
        }
        CheckedBuffer buffer = new CheckedBuffer(byteSize);
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
     * Returns how much memory was wanted at a time, whether or not there was so much.
     *
     * @return the most that was in use together with what was asked for, in bytes
     */
    public long maxBytesRequested() {
        return maxBytesRequested.get();
    }

    /**
     * Returns how many buffers are handed out and not yet given back, those of no size included.
     *
     * @return the number at this moment
     */
    public int buffersInUse() {
        return open.size();
    }

    /**
     * Fails if a buffer was not given back or was given back twice. May be called at any time and more than once.
     *
     * @throws AssertionError with the places where the buffers were taken or given back as suppressed exceptions
     */
    @Override
    public void close() {
        if (open.isEmpty() && closedTwice.isEmpty()) {
            return;
        }
        AssertionError failure = new AssertionError("buffers not given back: " + open.size() + ", given back twice: "
                + closedTwice.size() + " (expected: none)");
        open.forEach(buffer -> failure.addSuppressed(buffer.taken));
        closedTwice.forEach(failure::addSuppressed);
        throw failure;
    }

    /** A buffer with an arena of its own. Safe for use by any thread. */
    private final class CheckedBuffer implements TensorBuffer {
        private final Arena arena = Arena.ofShared();
        private final AtomicBoolean closed = new AtomicBoolean();
        private final MemorySegment segment;
        private final Throwable taken;

        CheckedBuffer(long byteSize) {
            segment = arena.allocate(byteSize, ALIGNMENT).fill(GARBAGE);
            taken = new Throwable("buffer of " + byteSize + " bytes taken here and not given back");
        }

        @Override
        public MemorySegment segment() {
            return segment;
        }

        @Override
        public void close() {
            if (!closed.compareAndSet(false, true)) {
                IllegalStateException twice = new IllegalStateException("buffer: given back twice (expected: once)");
                closedTwice.add(twice);
                throw twice;
            }
            open.remove(this);
            bytesInUse.addAndGet(-segment.byteSize());
            arena.close();
        }
    }
}
