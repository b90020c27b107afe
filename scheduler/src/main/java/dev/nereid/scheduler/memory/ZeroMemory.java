package dev.nereid.scheduler.memory;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.api.InferenceException;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.api.memory.TensorMemory;
import dev.nereid.spi.DataType;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.Tensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * A block of zeros that all zero tensors of a model share. It lies in the tensor memory, grows, and is
 * {@linkplain #free freed} as a whole. Safe for use by any thread.
 *
 * <p>A block that is freed, or replaced by a larger one, ends with the last tensor in it. Nothing writes to a block.
 * Threads that need no larger block do not wait while a new one is cleared.
 */
public final class ZeroMemory {
    /** The divisor of the part by which a new block is larger than needed, so that slow growth copies little. */
    private static final int SPARE = 4;

    /** A block of zeros. */
    private record Block(MemorySegment data, ReferenceCountedMemory memory) {}

    private final TensorMemory memory;
    private final ReentrantLock lock = new ReentrantLock();

    /** Held while a block is allocated and cleared, which takes long, by threads that need a larger one. */
    private final ReentrantLock growing = new ReentrantLock();

    @GuardedBy("lock")
    private @Nullable Block block;

    @GuardedBy("lock")
    private boolean closed;

    /** The size of the block in bytes; written with the lock. */
    private volatile long capacity;

    /** Begins without a block. */
    public ZeroMemory(TensorMemory memory) {
        this.memory = memory;
    }

    /** Returns the size of the zeros in place of a tensor, in bytes: byte strings are empty. */
    public static long byteSize(Tensor like) {
        return like.type() == DataType.BYTES
                ? Math.multiplyExact(like.shape().elementCount(), Integer.BYTES)
                : like.byteSize();
    }

    /**
     * Grows the block to a size. Has no effect after the close.
     *
     * @param byteSize the size of the largest tensor of zeros that is needed
     * @throws InferenceException with {@link dev.nereid.spi.ErrorCode#UNAVAILABLE} if there is no memory
     */
    public void reserve(long byteSize) {
        if (byteSize <= capacity) {
            return;
        }
        growing.lock();
        try {
            if (byteSize > capacity && !isClosed()) {
                Block grown = block(allocate(byteSize));
                if (!install(grown)) {
                    grown.memory.release();
                }
            }
        } finally {
            growing.unlock();
        }
    }

    private boolean isClosed() {
        lock.lock();
        try {
            return closed;
        } finally {
            lock.unlock();
        }
    }

    private static Block block(TensorBuffer buffer) {
        return new Block(buffer.segment().asReadOnly(), ReferenceCountedMemory.of(buffer));
    }

    /** Takes over a new block; returns whether it did. It does until the close. */
    private boolean install(Block grown) {
        Block before;
        lock.lock();
        try {
            if (closed) {
                return false;
            }
            before = block;
            block = grown;
            capacity = grown.data.byteSize();
        } finally {
            lock.unlock();
        }
        if (before != null) {
            before.memory.release();
        }
        return true;
    }

    /** Allocates more than needed, or just as much if there is no memory for that. */
    private TensorBuffer allocate(long byteSize) {
        try {
            return memory.allocateZeroed(Math.addExact(byteSize, byteSize / SPARE));
        } catch (InferenceException | ArithmeticException e) {
            return memory.allocateZeroed(byteSize);
        }
    }

    /** The zeros that one user holds, from {@link #use} until {@link #release}. Immutable. */
    public static final class Use {
        private final Block block;

        private Use(Block block) {
            this.block = block;
        }

        /** Returns zeros of the type and shape of another tensor, on the host; of byte strings, empty ones. */
        public Tensor like(String name, Tensor other) {
            return Tensor.of(
                    name, other.type(), other.shape(), block.data.asSlice(0, byteSize(other)), MemoryPlace.HOST);
        }

        /** Releases the zeros. Called once. */
        public void release() {
            block.memory.release();
        }
    }

    /**
     * Retains a block of a size, which is normally {@linkplain #reserve reserved}. If it was freed meanwhile and the
     * tensor memory is full now, the block lies outside of the tensor memory, so that no execution fails for it.
     */
    public Use use(long byteSize) {
        Use present = find(byteSize);
        if (present != null) {
            return present;
        }
        growing.lock();
        try {
            Use grown = find(byteSize); // by another thread
            return grown == null ? growOrAllocateElsewhere(byteSize) : grown;
        } finally {
            growing.unlock();
        }
    }

    /** Retains the block if it is large enough; {@code null} otherwise. */
    private @Nullable Use find(long byteSize) {
        lock.lock();
        try {
            Block current = block;
            if (current != null && byteSize <= current.data.byteSize()) {
                current.memory.retain();
                return new Use(current);
            }
            if (closed) {
                throw new IllegalStateException("zeros: closed (expected: not yet)");
            }
            return null;
        } finally {
            lock.unlock();
        }
    }

    private Use growOrAllocateElsewhere(long byteSize) {
        Block grown;
        try {
            grown = block(allocate(byteSize));
        } catch (InferenceException e) {
            MemorySegment zeros = Arena.ofAuto().allocate(byteSize, Long.BYTES);
            return new Use(new Block(zeros.asReadOnly(), ReferenceCountedMemory.of(() -> {}, null)));
        }
        grown.memory.retain(); // for the user, before another thread may free it
        if (!install(grown)) { // closed meanwhile: the user is the only one
            grown.memory.release();
        }
        return new Use(grown);
    }

    /** Releases the block until zeros are needed again. */
    public void free() {
        release(false);
    }

    /** Releases the block. It is freed with the last tensor in it. */
    public void close() {
        release(true);
    }

    private void release(boolean isLast) {
        Block last;
        lock.lock();
        try {
            closed |= isLast;
            last = block;
            block = null;
            capacity = 0;
        } finally {
            lock.unlock();
        }
        if (last != null) {
            last.memory.release();
        }
    }
}
