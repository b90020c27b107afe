package dev.nereid.http;

import dev.nereid.api.InferenceException;
import dev.nereid.api.TensorBuffer;
import dev.nereid.api.TensorMemory;
import io.netty.buffer.ByteBuf;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.internal.buffer.BufferInternal;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Optional;

/**
 * The body of a request while it arrives: each byte is copied once, into tensor memory. Confined to one event loop; owns
 * the memory until {@link #take}.
 */
final class RequestBody implements AutoCloseable {
    private static final long FIRST_SIZE = 4096;
    /** A claim is believed up to here; memory for all of it is taken once so much has arrived. */
    private static final long MOST_AHEAD = 16 << 20;

    /** Clients that send more chunks than this, and small ones, waste the time of everybody else. */
    private static final int MOST_CHUNKS = 65536;

    private static final int SMALL_CHUNK = 512;

    private final TensorMemory memory;
    private final InferHead head;
    private final HttpOptions options;
    private Optional<TensorBuffer> buffer = Optional.empty();
    private MemorySegment target = MemorySegment.NULL;
    private long size;
    private int chunks;

    RequestBody(TensorMemory memory, InferHead head, HttpOptions options) {
        this.memory = memory;
        this.head = head;
        this.options = options;
    }

    /**
     * Copies what arrived.
     *
     * @throws InferenceException if it is too much, in bytes or in pieces, or if there is no memory for it
     */
    void append(Buffer chunk) {
        int length = chunk.length();
        if (length == 0) {
            return;
        }
        if (head.bodyLength() == InferHead.UNKNOWN) {
            checkChunked(size + length);
        }
        if (size + length > target.byteSize()) {
            grow(size + length);
        }
        copy(((BufferInternal) chunk).getByteBuf(), length);
        size += length;
    }

    /** Returns how many bytes arrived. */
    long size() {
        return size;
    }

    /** Returns what arrived; may be read until the body is closed, or its buffer is. */
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

    private void checkChunked(long newSize) {
        chunks++;
        if (chunks > MOST_CHUNKS && newSize < (long) chunks * SMALL_CHUNK) {
            throw JsonFields.invalid("Chunked request body exceeds maximum of " + MOST_CHUNKS
                    + " non-empty chunks. Send fewer or larger HTTP chunks.");
        }
        head.checkLimits(newSize, options);
    }

    private void grow(long needed) {
        long doubled = Long.highestOneBit(Math.max(needed, FIRST_SIZE) - 1) << 1;
        boolean announced = head.bodyLength() != InferHead.UNKNOWN;
        long capacity = Math.min(doubled, options.maxRequestBytes());
        if (announced) {
            capacity = needed > MOST_AHEAD ? head.bodyLength() : Math.min(MOST_AHEAD, head.bodyLength());
        }
        TensorBuffer larger = memory.allocate(Math.max(needed, capacity));
        larger.segment().copyFrom(target.asSlice(0, size));
        close();
        buffer = Optional.of(larger);
        target = larger.segment();
    }

    private void copy(ByteBuf bytes, int length) {
        if (bytes.hasArray()) {
            int from = bytes.arrayOffset() + bytes.readerIndex();
            MemorySegment.copy(bytes.array(), from, target, ValueLayout.JAVA_BYTE, size, length);
        } else {
            MemorySegment source = MemorySegment.ofBuffer(bytes.nioBuffer());
            MemorySegment.copy(source, 0, target, size, length);
        }
    }
}
