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
 * <p>A body begins in a small piece, of twice the size each time that it is full, and is copied once into a buffer that
 * grows in place when so much has arrived that its size can be believed. A claim alone takes nothing.
 */
final class BodyMemory implements AutoCloseable {
    private static final long INITIAL_SIZE = 4096;

    /** Bodies of unknown size are copied from piece to piece up to here. */
    private static final long MAX_COPIED_BYTES = 256 << 10;

    /** Of a body of known size, so much or the part below is enough to take a buffer for all of it. */
    private static final long TRUSTED_BYTES = 64 << 10;

    private static final int TRUSTED_DIVISOR = 16;

    private final TensorMemory memory;
    private final long expected;
    private final long limit;
    private @Nullable TensorBuffer buffer;
    private @Nullable GrowingBuffer growing;
    private MemorySegment target = MemorySegment.NULL;
    private long size;

    /**
     * Creates an empty body, which takes no memory yet.
     *
     * @param memory where to take it from
     * @param expected how large the body will be, or {@link RequestBodyHeaders#UNKNOWN}
     * @param limit how much memory it may take at most
     */
    BodyMemory(TensorMemory memory, long expected, long limit) {
        this.memory = memory;
        this.expected = expected;
        this.limit = limit;
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

    /** Returns the memory behind the body, at least one byte of it; empty if the limit is reached. */
    MemorySegment writable() {
        if (size == target.byteSize() && size < limit) {
            grow(size + 1);
        }
        return target.asSlice(size);
    }

    /** Adds bytes that were written into the {@link #writable}. */
    void advance(int length) {
        size += length;
    }

    /** Returns how many bytes there are. */
    long size() {
        return size;
    }

    /** Returns the bytes; may be read until this is closed, or the buffer that was taken is. */
    MemorySegment bytes() {
        return size == target.byteSize() ? target : target.asSlice(0, size);
    }

    /** Gives the memory away, if any was needed. */
    Optional<TensorBuffer> take() {
        Optional<TensorBuffer> taken = Optional.ofNullable(buffer);
        buffer = null;
        growing = null;
        return taken;
    }

    /** Gives the memory back, unless it was given away. Later calls do nothing. */
    @Override
    public void close() {
        take().ifPresent(TensorBuffer::close);
    }

    private void grow(long needed) {
        if (growing != null) {
            target = growing.grow(needed);
        } else if (expected == RequestBodyHeaders.UNKNOWN ? needed > MAX_COPIED_BYTES : isTrusted(needed)) {
            growInPlace(needed);
        } else {
            TensorBuffer larger = memory.allocate(nextSize(needed));
            moveTo(larger, larger.segment());
        }
    }

    /** Says whether so much of a body of known size has arrived that the rest may be expected to come. */
    private boolean isTrusted(long needed) {
        return expected > TRUSTED_BYTES && needed >= Math.min(TRUSTED_BYTES, expected / TRUSTED_DIVISOR);
    }

    private long nextSize(long needed) {
        long most = expected == RequestBodyHeaders.UNKNOWN ? limit : expected;
        long doubled = Long.highestOneBit(Math.max(needed, INITIAL_SIZE) - 1) << 1;
        return Math.max(needed, Math.min(doubled, most));
    }

    private void growInPlace(long needed) {
        GrowingBuffer larger = expected == RequestBodyHeaders.UNKNOWN
                ? memory.reserve(Math.min(limit, memory.largestBuffer()))
                : memory.reserve(Math.max(needed, expected));
        boolean moved = false;
        try {
            moveTo(larger, larger.grow(needed));
            growing = larger;
            moved = true;
        } finally {
            if (!moved) {
                larger.close();
            }
        }
    }

    private void moveTo(TensorBuffer larger, MemorySegment segment) {
        segment.copyFrom(target.asSlice(0, size));
        close();
        buffer = larger;
        target = segment;
    }
}
