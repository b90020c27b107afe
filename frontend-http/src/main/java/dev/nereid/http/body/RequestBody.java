package dev.nereid.http.body;

import dev.nereid.api.InferenceException;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.api.memory.TensorMemory;
import dev.nereid.http.json.JsonFields;
import io.netty.buffer.ByteBuf;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.internal.buffer.BufferInternal;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Receives a request body into tensor memory, and decompresses it. Confined to one event loop; owns the memory until
 * {@link #take}.
 */
public final class RequestBody implements AutoCloseable {
    /**
     * Clients that send more chunks than this, and small ones, waste the time of everybody else. The size matters because
     * the transport does not say where a chunk ends: it brings a large one in pieces, as they come.
     */
    private static final int MAX_CHUNKS = 65536;

    /** So many bytes or more are no small chunk, on average. */
    private static final int MIN_AVERAGE_CHUNK = 512;

    /** So many bytes are inflated before others have their turn. */
    private static final int MAX_INFLATED_AT_ONCE = 256 << 10;

    private final RequestBodyHeaders headers;
    private final BodyLimits limits;
    private final BodyMemory memory;
    private @Nullable BodyInflater inflater;
    /** What arrived, as it came. */
    private long received;

    private int chunks;

    public RequestBody(TensorMemory memory, RequestBodyHeaders head, BodyLimits limits) {
        this.headers = head;
        this.limits = limits;
        this.memory = head.coding() == ContentCoding.IDENTITY
                ? new BodyMemory(memory, head.bodyLength(), limits.maxRequestBytes())
                : new BodyMemory(memory, RequestBodyHeaders.UNKNOWN, head.maxInflatedBytes(limits));
    }

    /**
     * Takes what arrived.
     *
     * @return whether all of it was taken; if not, {@link #inflateMore} before more is given
     * @throws InferenceException if it is too much, in bytes or in pieces, or broken, or if there is no memory for it
     */
    public boolean append(Buffer chunk) {
        int length = chunk.length();
        if (length == 0) {
            return true;
        }
        if (headers.bodyLength() == RequestBodyHeaders.UNKNOWN) {
            checkChunked(received + length);
        }
        received += length;
        ByteBuf bytes = ((BufferInternal) chunk).getByteBuf();
        if (headers.coding() == ContentCoding.IDENTITY) {
            memory.append(bytes, length);
            return true;
        }
        ByteBuffer piece = bytes.nioBuffer();
        if (inflater == null) {
            inflater = new BodyInflater(piece.get(piece.position()), () -> headers.inflatedTooLarge(limits));
        }
        inflater.setInput(piece);
        return inflateMore();
    }

    /** Takes more of what arrived, as {@link #append} does. */
    public boolean inflateMore() {
        return inflater == null || inflater.inflate(memory, MAX_INFLATED_AT_ONCE);
    }

    /**
     * Checks that nothing is missing, now that all has arrived.
     *
     * @throws InferenceException if something is
     */
    public void finish() {
        if (inflater != null) {
            inflater.finish();
        } else if (headers.coding() != ContentCoding.IDENTITY) {
            throw JsonFields.invalid("nothing to be decompressed");
        }
        endInflating();
    }

    /** Returns how many bytes the body has. */
    public long size() {
        return memory.size();
    }

    /** Returns the body; may be read until it is closed, or its buffer is. */
    public MemorySegment bytes() {
        return memory.bytes();
    }

    /** Gives the memory away, if any was needed. */
    public Optional<TensorBuffer> take() {
        return memory.take();
    }

    /** Gives the memory back, unless it was given away. Later calls do nothing. */
    @Override
    public void close() {
        endInflating();
        memory.close();
    }

    private void endInflating() {
        if (inflater != null) {
            inflater.close();
            inflater = null;
        }
    }

    private void checkChunked(long newSize) {
        chunks++;
        if (chunks > MAX_CHUNKS && newSize < (long) chunks * MIN_AVERAGE_CHUNK) {
            throw JsonFields.invalid("Chunked request body exceeds maximum of " + MAX_CHUNKS
                    + " non-empty chunks. Send fewer or larger HTTP chunks.");
        }
        headers.checkLimits(newSize, limits);
    }
}
