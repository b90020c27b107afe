package dev.nereid.grpc;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.TensorBuffer;
import dev.nereid.api.TensorMemory;
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
 * The bytes of one message, in the pieces in which they came off the network. Confined to the event loop of its call.
 *
 * <p>Normally a view of the transport's buffers, readable until the stream it was made of is closed. A message that
 * was compressed, or came in crumbs, is copied into pooled memory once, which {@link #close} gives back.
 */
final class MessageBytes implements AutoCloseable {
    private static final int TRANSFER_BYTES = 8 * 1024;
    private static final int FIRST_PIECE_BYTES = 64 * 1024;
    private static final int MAX_PIECE_BYTES = 4 * 1024 * 1024;

    private final ByteBuffer[] pieces;
    private final int[] starts;
    private final int length;
    private final List<TensorBuffer> owned;

    private MessageBytes(List<ByteBuffer> pieces, List<TensorBuffer> owned) {
        this.pieces = pieces.stream()
                .filter(ByteBuffer::hasRemaining)
                .map(piece -> piece.slice().order(ByteOrder.LITTLE_ENDIAN))
                .toArray(ByteBuffer[]::new);
        this.starts = new int[this.pieces.length];
        this.owned = owned;
        int end = 0;
        for (int i = 0; i < starts.length; i++) {
            starts[i] = end;
            end = Math.addExact(end, this.pieces[i].limit());
        }
        this.length = end;
    }

    /** Looks at bytes that lie in these buffers, one after another. */
    static MessageBytes of(ByteBuffer... pieces) {
        return new MessageBytes(List.of(pieces), List.of());
    }

    /**
     * Looks at all that a stream of the transport holds.
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
            pieces.add(piece);
            stream.skipNBytes(piece.remaining());
            if (stream.available() == 0) {
                return pieces;
            }
        }
    }

    private static MessageBytes copy(InputStream stream, TensorMemory memory) throws IOException {
        List<ByteBuffer> pieces = new ArrayList<>();
        List<TensorBuffer> owned = new ArrayList<>();
        try {
            int size = stream instanceof KnownLength ? Math.max(1, stream.available()) : FIRST_PIECE_BYTES;
            byte[] transfer = new byte[TRANSFER_BYTES];
            for (int read = 0; read >= 0; size = Math.min(2 * size, MAX_PIECE_BYTES)) {
                TensorBuffer buffer = memory.allocate(size);
                owned.add(buffer);
                ByteBuffer piece = buffer.segment().asByteBuffer();
                while (piece.hasRemaining() && read >= 0) {
                    read = stream.read(transfer, 0, Math.min(transfer.length, piece.remaining()));
                    piece.put(transfer, 0, Math.max(0, read));
                }
                pieces.add(piece.flip());
            }
            return new MessageBytes(pieces, owned);
        } catch (Throwable failure) {
            owned.forEach(TensorBuffer::close);
            throw failure;
        }
    }

    /** Returns the number of bytes. */
    int length() {
        return length;
    }

    /** Returns the index of the piece in which a byte lies. */
    int pieceAt(int position) {
        int found = Arrays.binarySearch(starts, position);
        return found >= 0 ? found : -found - 2;
    }

    /** Returns a piece, little-endian, from index 0 to its limit. Its position is not to be moved. */
    ByteBuffer piece(int index) {
        return pieces[index];
    }

    /** Returns the offset in the message of the first byte of a piece. */
    int start(int index) {
        return starts[index];
    }

    /** Copies a part of the message. */
    void copyTo(ByteRange range, MemorySegment target) {
        int done = 0;
        for (int i = pieceAt(range.start()); done < range.length(); i++) {
            int from = range.start() + done - starts[i];
            int count = Math.min(range.length() - done, pieces[i].limit() - from);
            MemorySegment.copy(MemorySegment.ofBuffer(pieces[i]), from, target, done, count);
            done += count;
        }
    }

    /** Gives back what memory of its own this object has. */
    @Override
    public void close() {
        owned.forEach(TensorBuffer::close);
    }
}
