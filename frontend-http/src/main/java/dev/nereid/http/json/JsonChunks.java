package dev.nereid.http.json;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.UnpooledByteBufAllocator;
import io.netty.buffer.UnpooledHeapByteBuf;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.function.BooleanSupplier;

/**
 * A large JSON text in chunks on the heap. Confined to one thread at a time. Owns the heap memory of the chunks, which
 * is reserved until each is released; no chunk is copied, and none grows.
 */
public final class JsonChunks implements AutoCloseable {
    /** The size of a chunk, which the transport copies at once into its own memory. */
    public static final int CHUNK_SIZE = 256 << 10;

    private final BooleanSupplier abandoned;
    private final JsonMemoryLimiter memory;
    private List<ByteBuf> chunks = new ArrayList<>();
    private long size;
    private long reserved;

    /** Creates an empty text. The writing thread asks {@code abandoned} whether the client is gone. */
    public JsonChunks(BooleanSupplier abandoned, JsonMemoryLimiter memory) {
        this.abandoned = abandoned;
        this.memory = memory;
    }

    /**
     * Returns memory for the next chunk, which must be added before another is allocated.
     *
     * @throws dev.nereid.api.InferenceException if all texts together would exceed the limit
     */
    public byte[] allocate(int length) {
        memory.reserve(length);
        reserved += length;
        return new byte[length];
    }

    /**
     * Adds the next chunk, with {@code length} bytes of text, and takes ownership of it.
     *
     * @throws CancellationException if the client is gone
     */
    public void add(byte[] bytes, int length) {
        if (abandoned.getAsBoolean()) {
            throw new CancellationException("the response was abandoned");
        }
        chunks.add(new Chunk(memory, bytes, reserved).writerIndex(length));
        reserved = 0;
        size += length;
    }

    /** Returns the size of the text, also after {@link #take}. */
    public long size() {
        return size;
    }

    /** Transfers the chunks to the caller, who must release them. */
    public List<ByteBuf> take() {
        List<ByteBuf> taken = chunks;
        chunks = new ArrayList<>();
        return taken;
    }

    /** Releases the memory of all chunks that were not transferred. */
    @Override
    public void close() {
        memory.release(reserved);
        reserved = 0;
        take().forEach(ByteBuf::release);
    }

    /** A chunk that returns its reserved memory when it is released. */
    private static final class Chunk extends UnpooledHeapByteBuf {
        private final JsonMemoryLimiter memory;
        private final long reserved;

        Chunk(JsonMemoryLimiter memory, byte[] bytes, long reserved) {
            super(UnpooledByteBufAllocator.DEFAULT, bytes, bytes.length);
            this.memory = memory;
            this.reserved = reserved;
        }

        @Override
        protected void freeArray(byte[] array) {
            memory.release(reserved);
        }
    }
}
