package dev.nereid.http;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.UnpooledByteBufAllocator;
import io.netty.buffer.UnpooledHeapByteBuf;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.function.BooleanSupplier;

/**
 * A long text in pieces, as they were written. Confined to one thread at a time. Owns the memory of the pieces, which is
 * on the heap and reserved there until each is released; no piece is copied, and none grows.
 */
final class TextPieces implements AutoCloseable {
    /** How large a piece is; the transport takes so much at a time into memory of its own. */
    static final int PIECE_SIZE = 256 << 10;

    private final BooleanSupplier abandoned;
    private final TextMemory memory;
    private List<ByteBuf> pieces = new ArrayList<>();
    private long size;
    /** What is reserved for the piece that is being written. */
    private long reserved;

    /**
     * Begins a text.
     *
     * @param abandoned says whether nobody wants the text any more; asked by the thread that writes
     * @param memory bounds the memory of all texts
     */
    TextPieces(BooleanSupplier abandoned, TextMemory memory) {
        this.abandoned = abandoned;
        this.memory = memory;
    }

    /**
     * Returns memory for the next piece, which is to be added before another is asked for.
     *
     * @throws dev.nereid.api.InferenceException if all texts together would take too much
     */
    byte[] allocate(int length) {
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
    void add(byte[] bytes, int length) {
        if (abandoned.getAsBoolean()) {
            throw new CancellationException("nobody wants this text any more");
        }
        pieces.add(new Piece(memory, bytes, reserved).writerIndex(length));
        reserved = 0;
        size += length;
    }

    /** Returns how many bytes there are, or were. */
    long size() {
        return size;
    }

    /** Gives the pieces away, which are to be released. */
    List<ByteBuf> take() {
        List<ByteBuf> taken = pieces;
        pieces = new ArrayList<>();
        return taken;
    }

    /** Gives the memory back of all that was not given away. */
    @Override
    public void close() {
        memory.release(reserved);
        reserved = 0;
        take().forEach(ByteBuf::release);
    }

    /** A part of the text, whose memory is free for others when it is released. */
    private static final class Piece extends UnpooledHeapByteBuf {
        private final TextMemory memory;
        private final long reserved;

        Piece(TextMemory memory, byte[] bytes, long reserved) {
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
