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
     * The maximum number of small chunks, which cost other clients time. The size matters because the transport does
     * not report where a chunk ends: it delivers a large one in pieces.
     */
    private static final int MAX_CHUNKS = 65536;

    /** The average size from which chunks do not count as small. */
    private static final int MIN_AVERAGE_CHUNK = 512;

    /** The number of bytes to inflate before other requests are served. */
    private static final int MAX_INFLATED_AT_ONCE = 256 << 10;

    private final RequestBodyHeaders headers;
    private final BodyLimits limits;
    private final BodyMemory memory;
    private @Nullable BodyInflater inflater;
    /** The number of bytes received, before decompression. */
    private long received;

    private int chunks;

    public RequestBody(TensorMemory memory, RequestBodyHeaders headers, BodyLimits limits) {
        this.headers = headers;
        this.limits = limits;
        boolean isPlain = headers.coding() == ContentCoding.IDENTITY;
        this.memory = new BodyMemory(
                memory,
                isPlain ? headers.bodyLength() : RequestBodyHeaders.UNKNOWN,
                isPlain ? limits.maxRequestBytes() : headers.maxInflatedBytes(limits),
                headers.alignmentOffset());
    }

    /**
     * Appends a received chunk.
     *
     * @return whether all of it was appended; if not, {@link #inflateMore} must be called before the next chunk
     * @throws InferenceException if the body has too many bytes or chunks, or is corrupt, or if there is no memory for
     *     it
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

    /** Appends more of the last chunk, as {@link #append} does. */
    public boolean inflateMore() {
        return inflater == null || inflater.inflate(memory, MAX_INFLATED_AT_ONCE);
    }

    /**
     * Checks that the body is complete, once all has arrived.
     *
     * @throws InferenceException if it is not
     */
    public void finish() {
        if (inflater != null) {
            inflater.finish();
        } else if (headers.coding() != ContentCoding.IDENTITY) {
            throw JsonFields.invalid("nothing to be decompressed");
        }
        endInflating();
    }

    /** Returns the size of the body in bytes. */
    public long size() {
        return memory.size();
    }

    /** Returns the body, valid until this, or its buffer, is closed. */
    public MemorySegment bytes() {
        return memory.bytes();
    }

    /** Transfers the memory to the caller; empty if the body has none. */
    public Optional<TensorBuffer> take() {
        return memory.take();
    }

    /** Releases the memory, unless it was transferred. Later calls do nothing. */
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
