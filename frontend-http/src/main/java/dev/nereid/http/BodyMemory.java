package dev.nereid.http;

import dev.nereid.api.TensorBuffer;
import dev.nereid.api.TensorMemory;
import io.netty.buffer.ByteBuf;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Optional;

/** Tensor memory that grows with the body that is put into it. Confined to one event loop; owns it until {@link #take}. */
final class BodyMemory implements AutoCloseable {
    private static final long FIRST_SIZE = 4096;
    /** A claim is believed up to here; memory for all of it is taken once so much has arrived. */
    private static final long MOST_AHEAD = 16 << 20;

    private final TensorMemory memory;
    private final long expected;
    private final long limit;
    private Optional<TensorBuffer> buffer = Optional.empty();
    private MemorySegment target = MemorySegment.NULL;
    private long size;

    /**
     * Creates an empty body, which takes no memory yet.
     *
     * @param memory where to take it from
     * @param expected how large the body will be, or {@link InferHead#UNKNOWN}
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
    MemorySegment room() {
        if (size == target.byteSize() && size < limit) {
            grow(size + 1);
        }
        return target.asSlice(size);
    }

    /** Adds bytes that were written into the {@link #room}. */
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
        Optional<TensorBuffer> taken = buffer;
        buffer = Optional.empty();
        return taken;
    }

    /** Gives the memory back, unless it was given away. Later calls do nothing. */
    @Override
    public void close() {
        take().ifPresent(TensorBuffer::close);
    }

    private void grow(long needed) {
        long doubled = Long.highestOneBit(Math.max(needed, FIRST_SIZE) - 1) << 1;
        long capacity = Math.min(doubled, limit);
        if (expected != InferHead.UNKNOWN) {
            capacity = needed > MOST_AHEAD ? expected : Math.min(MOST_AHEAD, expected);
        }
        TensorBuffer larger = memory.allocate(Math.max(needed, capacity));
        larger.segment().copyFrom(target.asSlice(0, size));
        close();
        buffer = Optional.of(larger);
        target = larger.segment();
    }
}
