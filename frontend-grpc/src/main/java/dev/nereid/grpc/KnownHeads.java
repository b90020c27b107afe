package dev.nereid.grpc;

import static dev.nereid.grpc.WireReader.BYTES;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Reads requests, and remembers what those said that may come again: a client that sends one tensor after the other
 * repeats to the byte all that lies before the tensors. A head is kept when it comes for the second time in a row, as far
 * as its place goes. Confined to the event loop of its calls.
 *
 * <p>The same bytes are the same message, whatever became of the models meanwhile; only the tensors behind them are
 * read anew. What does not match is left to {@link InferMessageReader}, like everything that is wrong.
 */
final class KnownHeads {
    /** A power of two. */
    private static final int MOST = 64;

    private static final int LONGEST = 2048;

    /** More inputs and outputs than most models have, and few enough for as many heads to take little memory. */
    private static final int MOST_NAMES = 32;

    /** The tag of a tensor's bytes. */
    private static final int TENSOR = 7 << 3 | BYTES;

    private static final int UNKNOWN = -1;

    private final @Nullable KnownHead[] heads = new KnownHead[MOST];

    /** For each place what came last, known or not: what comes but once is not worth its place. */
    private final int[] last = new int[MOST];

    /**
     * What a head said. Immutable.
     *
     * @param text its bytes
     * @param message what it said, without tensors
     */
    private record KnownHead(ByteBuffer text, InferMessage message) {
        boolean is(ByteBuffer other, int length) {
            if (text.limit() != length) {
                return false;
            }
            int difference = text.mismatch(other);
            return difference < 0 || difference == length;
        }
    }

    /**
     * Reads a request.
     *
     * @param bytes the message, which goes on to belong to the caller if this method throws
     * @throws dev.nereid.api.InferenceException if the bytes are no such message
     */
    InferMessage read(MessageBytes bytes) {
        int length = bytes.length() == 0 ? UNKNOWN : headLength(bytes.piece(0));
        if (length == UNKNOWN) {
            return InferMessageReader.read(bytes);
        }
        ByteBuffer piece = bytes.piece(0);
        int hash = hash(piece, length);
        int slot = slot(hash);
        KnownHead known = heads[slot];
        if (known != null && known.is(piece, length)) {
            InferMessage head = known.message;
            List<ByteRange> tensors = tensors(bytes, length, head.inputs().size());
            if (tensors != null) {
                last[slot] = hash;
                return with(bytes, head, tensors);
            }
        }
        InferMessage message = InferMessageReader.read(bytes);
        if (mayComeAgain(message) && tensors(bytes, length, message.inputs().size()) != null) {
            if (last[slot] == hash) {
                ByteBuffer text = ByteBuffer.allocate(length).put(0, piece, 0, length);
                heads[slot] = new KnownHead(text, with(MessageBytes.of(List.of()), message, List.of()));
            }
            last[slot] = hash;
        }
        return message;
    }

    /**
     * Finds out how long the part before the first tensor is.
     *
     * @return {@link #UNKNOWN} if it is too long, or not as clients write it, or if there is no tensor
     */
    private static int headLength(ByteBuffer piece) {
        int end = Math.min(piece.limit() - 2, LONGEST);
        int at = 0;
        while (at < end) {
            int tag = piece.get(at);
            if (tag == TENSOR) {
                return at;
            }
            int length = piece.get(at + 1);
            if ((tag & 7) != BYTES || tag < 0) {
                return UNKNOWN;
            }
            at += 2;
            if (length < 0) { // it goes on in the next byte, and no further unless it is too long
                length = (length & 0x7F) + (piece.get(at++) << 7);
                if (length < 0) {
                    return UNKNOWN;
                }
            }
            at += length;
        }
        return UNKNOWN;
    }

    private static int hash(ByteBuffer piece, int length) {
        long hash = length;
        int at = 0;
        for (; at <= length - Long.BYTES; at += Long.BYTES) {
            hash = 31 * hash + piece.getLong(at);
        }
        for (; at < length; at++) {
            hash = 31 * hash + piece.get(at);
        }
        hash *= 0x9E37_79B9_7F4A_7C15L; // every bit has its say in the highest
        return (int) (hash >>> Integer.SIZE);
    }

    private static int slot(int hash) {
        return hash >>> (Integer.SIZE - Integer.numberOfTrailingZeros(MOST));
    }

    /** Finds the tensors behind a head; {@code null} if there are too many, or anything else. */
    private static @Nullable List<ByteRange> tensors(MessageBytes bytes, int length, int most) {
        List<ByteRange> tensors = new ArrayList<>(most);
        WireReader reader = WireReader.of(bytes, new ByteRange(length, bytes.length() - length));
        while (reader.hasMore()) {
            if (tensors.size() == most || reader.tag() != TENSOR) {
                return null;
            }
            tensors.add(reader.range());
        }
        return tensors;
    }

    /** An id is new each time as a rule, and so are parameters; contents are no part of a head. */
    private static boolean mayComeAgain(InferMessage message) {
        return message.names().id().isEmpty()
                && message.parameters().isEmpty()
                && message.inputs().size() + message.outputs().size() <= MOST_NAMES
                && message.inputs().stream()
                        .allMatch(input ->
                                input.parameters().isEmpty() && input.contents().isEmpty())
                && message.outputs().stream()
                        .allMatch(output -> output.parameters().isEmpty());
    }

    private static InferMessage with(MessageBytes bytes, InferMessage head, List<ByteRange> tensors) {
        return new InferMessage(bytes, head.names(), head.parameters(), head.inputs(), head.outputs(), tensors);
    }
}
