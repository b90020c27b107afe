package dev.nereid.http;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.function.BooleanSupplier;

/**
 * A long text in pieces, as they were written. Confined to one thread at a time. Owns the memory of the pieces, which is
 * on the heap; no piece is copied, and none grows.
 */
final class TextPieces {
    /** How large a piece is; the transport takes so much at a time into memory of its own. */
    static final int PIECE_SIZE = 256 << 10;

    private final BooleanSupplier abandoned;
    private final List<ByteBuf> pieces = new ArrayList<>();
    private long size;

    /**
     * Begins a text.
     *
     * @param abandoned says whether nobody wants the text any more; asked by the thread that writes
     */
    TextPieces(BooleanSupplier abandoned) {
        this.abandoned = abandoned;
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
        pieces.add(Unpooled.wrappedBuffer(bytes, 0, length));
        size += length;
    }

    /** Returns how many bytes there are. */
    long size() {
        return size;
    }

    /** Returns the pieces, which are to be released. */
    List<ByteBuf> toList() {
        return List.copyOf(pieces);
    }
}
