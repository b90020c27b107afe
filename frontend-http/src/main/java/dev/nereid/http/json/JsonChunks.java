package dev.nereid.http.json;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.UnpooledByteBufAllocator;
import io.netty.buffer.UnpooledHeapByteBuf;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.function.BooleanSupplier;

/**
 * A large JSON text in chunks on the heap. Confined to one thread at a time. Owns the memory of the pieces, which is
 * on the heap and reserved there until each is released; no piece is copied, and none grows.
 */
public final class JsonChunks implements AutoCloseable {
    /** How large a piece is; the transport takes so much at a time into memory of its own. */
    public static final int CHUNK_SIZE = 256 << 10;

    private final BooleanSupplier abandoned;
    private final JsonMemoryLimiter memory;
    private List<ByteBuf> chunks = new ArrayList<>();
    private long size;
    /** What is reserved for the piece that is being written. */
    private long reserved;

    /**
     * Begins a text.
     *
     * @param abandoned says whether nobody wants the text any more; asked by the thread that writes
     * @param memory bounds the memory of all texts
     */
    public JsonChunks(BooleanSupplier abandoned, JsonMemoryLimiter memory) {
        this.abandoned = abandoned;
        this.memory = memory;
    }

    /**
     * Returns memory for the next piece, which is to be added before another is asked for.
     *
     * @throws dev.nereid.api.InferenceException if all texts together would take too much
     */
    public byte[] allocate(int length) {
        memory.reserve(length);
        reserved += length;
        return new byte[length];
    }

    /**
     * Takes the next piece over.
     *
     * @param bytes its memory
     * @param length how many of the bytes are text
     * @throws CancellationException if nobody wants the text any more
     */
    public void add(byte[] bytes, int length) {
        if (abandoned.getAsBoolean()) {
            throw new CancellationException("nobody wants this text any more");
        }
        chunks.add(new Chunk(memory, bytes, reserved).writerIndex(length));
        reserved = 0;
        size += length;
    }

    /** Returns how many bytes there are, or were. */
    public long size() {
        return size;
    }

    /** Gives the pieces away, which are to be released. */
    public List<ByteBuf> take() {
        List<ByteBuf> taken = chunks;
        chunks = new ArrayList<>();
        return taken;
    }

    /** Gives the memory back of all that was not given away. */
    @Override
    public void close() {
        memory.release(reserved);
        reserved = 0;
        take().forEach(ByteBuf::release);
    }

    /** A chunk whose release returns its reserved memory. */
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
