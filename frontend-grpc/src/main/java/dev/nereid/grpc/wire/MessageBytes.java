package dev.nereid.grpc.wire;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.api.memory.TensorMemory;
import io.grpc.HasByteBuffer;
import io.grpc.KnownLength;
import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * The received bytes of one message, in one or more buffers. Confined to one thread at a time.
 *
 * <p>Normally a view of the transport's buffers, readable until their stream is closed. A message that was compressed
 * or arrived in small fragments is copied once into pooled memory, which {@link #close} releases.
 */
public final class MessageBytes implements AutoCloseable {
    private static final int TRANSFER_BYTES = 8 * 1024;
    private static final int FIRST_PIECE_BYTES = 64 * 1024;
    private static final int MAX_PIECE_BYTES = 4 * 1024 * 1024;

    private final ByteBuffer[] pieces;
    private final int[] starts;
    private final int length;
    private final List<TensorBuffer> owned;

    private MessageBytes(List<ByteBuffer> buffers, List<TensorBuffer> owned) {
        this.pieces = new ByteBuffer[buffers.size()];
        this.starts = new int[buffers.size()];
        this.owned = owned;
        int end = 0;
        for (int i = 0; i < pieces.length; i++) {
            ByteBuffer buffer = buffers.get(i);
            pieces[i] = (buffer.position() == 0 ? buffer : buffer.slice()).order(ByteOrder.LITTLE_ENDIAN);
            starts[i] = end;
            end = Math.addExact(end, pieces[i].limit());
        }
        this.length = end;
    }

    /** Wraps consecutive buffers, none of them empty. The caller gives up the buffers. */
    public static MessageBytes of(List<ByteBuffer> pieces) {
        return new MessageBytes(pieces, List.of());
    }

    /**
     * Returns all bytes of a stream of the transport. They stay in place if its buffers are accessible.
     *
     * @throws IOException if the stream cannot be read, for instance because its compression is broken
     */
    static MessageBytes of(InputStream stream, TensorMemory memory) throws IOException {
        if (stream instanceof HasByteBuffer source && source.byteBufferSupported() && stream.markSupported()) {
            return new MessageBytes(views(stream, source), List.of());
        }
        return copy(stream, memory);
    }

    private static List<ByteBuffer> views(InputStream stream, HasByteBuffer source) throws IOException {
        int length = stream.available();
        if (length == 0) {
            return List.of();
        }
        ByteBuffer first = requireNonNull(source.getByteBuffer());
        if (first.remaining() == length) {
            return List.of(first);
        }
        List<ByteBuffer> pieces = new ArrayList<>();
        stream.mark(length); // without it, skipping a buffer would release it
        for (ByteBuffer piece = first; ; piece = requireNonNull(source.getByteBuffer())) {
            if (piece.hasRemaining()) {
                pieces.add(piece);
            }
            stream.skipNBytes(piece.remaining());
            if (stream.available() == 0) {
                return pieces;
            }
        }
    }

    private static MessageBytes copy(InputStream stream, TensorMemory memory) throws IOException {
        List<ByteBuffer> pieces = new ArrayList<>();
        List<TensorBuffer> owned = new ArrayList<>();
        boolean complete = false;
        try {
            boolean isLengthKnown = stream instanceof KnownLength;
            int size = isLengthKnown ? stream.available() : FIRST_PIECE_BYTES;
            byte[] transfer = new byte[TRANSFER_BYTES];
            boolean more = size > 0;
            while (more) {
                TensorBuffer buffer = memory.allocate(size);
                owned.add(buffer);
                ByteBuffer piece = buffer.segment().asByteBuffer();
                more = fill(piece, stream, transfer) && !isLengthKnown;
                if (piece.flip().hasRemaining()) {
                    pieces.add(piece);
                }
                size = Math.min(2 * size, MAX_PIECE_BYTES);
            }
            complete = true;
            return new MessageBytes(pieces, owned);
        } finally {
            if (!complete) {
                owned.forEach(TensorBuffer::close);
            }
        }
    }

    /** Reads until a piece is full. Returns false if the stream ends before. */
    private static boolean fill(ByteBuffer piece, InputStream stream, byte[] transfer) throws IOException {
        while (piece.hasRemaining()) {
            int read = stream.read(transfer, 0, Math.min(transfer.length, piece.remaining()));
            if (read < 0) {
                return false;
            }
            piece.put(transfer, 0, read);
        }
        return true;
    }

    public int length() {
        return length;
    }

    /** Returns the index of the piece in which a byte lies. */
    int pieceAt(int position) {
        int found = Arrays.binarySearch(starts, position);
        return found >= 0 ? found : -found - 2;
    }

    /** Returns a piece, little-endian, from index 0 to its limit. Callers do not move its position. */
    ByteBuffer piece(int index) {
        return pieces[index];
    }

    /** Returns the offset in the message of the first byte of a piece. */
    int start(int index) {
        return starts[index];
    }

    void copyTo(ByteRange range, MemorySegment target) {
        int done = 0;
        for (int i = pieceAt(range.start()); done < range.length(); i++) {
            int from = range.start() + done - starts[i];
            int count = Math.min(range.length() - done, pieces[i].limit() - from);
            MemorySegment.copy(MemorySegment.ofBuffer(pieces[i]), from, target, done, count);
            done += count;
        }
    }

    /** Releases the memory of copied bytes. */
    @Override
    public void close() {
        owned.forEach(TensorBuffer::close);
    }
}
