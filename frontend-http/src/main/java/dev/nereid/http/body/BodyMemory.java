package dev.nereid.http.body;

import dev.nereid.api.memory.GrowingBuffer;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.api.memory.TensorMemory;
import io.netty.buffer.ByteBuf;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Tensor memory that grows with a request body. Confined to one event loop; owns it until {@link #take}.
 *
 * <p>A body begins in a small piece, which doubles when it is full, and is copied once into a buffer that grows in
 * place when enough of it has arrived to trust its declared size. A declared size alone allocates nothing.
 *
 * <p>The body begins behind an offset in its buffer, so that its first tensor is aligned, though it lies behind JSON of
 * any length.
 */
final class BodyMemory implements AutoCloseable {
    private static final long INITIAL_SIZE = 4096;

    /** Bodies of unknown size are copied from piece to piece up to here. */
    private static final long MAX_COPIED_BYTES = 256 << 10;

    /**
     * Received bytes at which a buffer for the whole body is reserved. The next constant is the divisor of the declared
     * size for the same purpose.
     */
    private static final long TRUSTED_BYTES = 64 << 10;

    private static final int TRUSTED_DIVISOR = 16;

    private final TensorMemory memory;
    private final long expected;
    private final long limit;
    private final long offset;
    private @Nullable TensorBuffer buffer;
    private @Nullable GrowingBuffer growing;
    /** The memory behind the offset. */
    private MemorySegment target = MemorySegment.NULL;

    private long size;

    /**
     * Creates an empty body, which has no memory yet.
     *
     * @param expected the declared size of the body, or {@link RequestBodyHeaders#UNKNOWN}
     * @param offset the number of bytes before the body in its buffer
     */
    BodyMemory(TensorMemory memory, long expected, long limit, long offset) {
        this.memory = memory;
        this.expected = Math.min(expected, Long.MAX_VALUE - offset); // their sum is allocated
        this.limit = limit;
        this.offset = offset;
    }

    /** Adds bytes, which must be within the limit. */
    void append(ByteBuf bytes, int length) {
        if (size + length > target.byteSize()) {
            grow(size + length);
        }
        if (bytes.hasArray()) {
            int from = bytes.arrayOffset() + bytes.readerIndex();
            MemorySegment.copy(bytes.array(), from, target, ValueLayout.JAVA_BYTE, size, length);
        } else {
            MemorySegment source = MemorySegment.ofBuffer(bytes.nioBuffer());
            MemorySegment.copy(source, 0, target, size, length);
        }
        size += length;
    }

    /** Returns the memory behind the body, at least one byte of it. It is empty if the limit is reached. */
    MemorySegment writable() {
        if (size == target.byteSize() && size < limit) {
            grow(size + 1);
        }
        return target.asSlice(size);
    }

    /** Adds bytes that were written into {@link #writable}. */
    void advance(int length) {
        size += length;
    }

    long size() {
        return size;
    }

    /** Returns the bytes, valid until this, or the buffer from {@link #take}, is closed. */
    MemorySegment bytes() {
        return size == target.byteSize() ? target : target.asSlice(0, size);
    }

    /** Transfers the memory to the caller; empty if the body has none. */
    Optional<TensorBuffer> take() {
        Optional<TensorBuffer> taken = Optional.ofNullable(buffer);
        buffer = null;
        growing = null;
        return taken;
    }

    /** Releases the memory, unless it was transferred. Later calls do nothing. */
    @Override
    public void close() {
        take().ifPresent(TensorBuffer::close);
    }

    private void grow(long needed) {
        if (growing != null) {
            target = behindOffset(growing.grow(offset + needed));
        } else if (expected == RequestBodyHeaders.UNKNOWN ? needed > MAX_COPIED_BYTES : isTrusted(needed)) {
            growInPlace(needed);
        } else {
            TensorBuffer larger = memory.allocate(nextSize(needed));
            moveTo(larger, larger.segment());
        }
    }

    /** Returns whether enough of a body of declared size has arrived to reserve memory for all of it. */
    private boolean isTrusted(long needed) {
        return expected > TRUSTED_BYTES && needed >= Math.min(TRUSTED_BYTES, expected / TRUSTED_DIVISOR);
    }

    /** Returns the size of the next buffer, offset included. */
    private long nextSize(long needed) {
        long maxSize = expected == RequestBodyHeaders.UNKNOWN ? limit : expected;
        long doubled = Long.highestOneBit(Math.max(offset + needed, INITIAL_SIZE) - 1) << 1;
        return offset + Math.max(needed, Math.min(doubled - offset, maxSize));
    }

    private void growInPlace(long needed) {
        GrowingBuffer larger = expected == RequestBodyHeaders.UNKNOWN
                ? memory.reserve(offset + Math.min(limit, memory.largestBuffer() - offset))
                : memory.reserve(offset + Math.max(needed, expected));
        boolean moved = false;
        try {
            moveTo(larger, larger.grow(offset + needed));
            growing = larger;
            moved = true;
        } finally {
            if (!moved) {
                larger.close();
            }
        }
    }

    private void moveTo(TensorBuffer next, MemorySegment segment) {
        MemorySegment larger = behindOffset(segment);
        larger.copyFrom(target.asSlice(0, size));
        close();
        buffer = next;
        target = larger;
    }

    private MemorySegment behindOffset(MemorySegment segment) {
        return offset == 0 ? segment : segment.asSlice(offset);
    }
}
