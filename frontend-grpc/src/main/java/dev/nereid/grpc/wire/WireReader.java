package dev.nereid.grpc.wire;

import dev.nereid.api.InferenceException;
import dev.nereid.api.Quoted;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;

/**
 * Reads the fields of protobuf messages, one after another. Confined to one thread at a time.
 *
 * <p>Accepts what the generated classes accept: both forms of repeated numbers are up to the caller, unknown fields are
 * skipped, lengths never lead out of the enclosing message. Every method throws {@link GrpcErrors#malformed} if the
 * bytes are malformed; nothing is allocated by a length that was not checked.
 *
 * <p>Protobuf's {@code CodedInputStream} would copy a direct buffer, and with it the tensors, to the heap.
 */
final class WireReader {
    static final int VARINT = 0;
    static final int FIXED64 = 1;
    static final int BYTES = 2;
    static final int START_GROUP = 3;
    static final int END_GROUP = 4;
    static final int FIXED32 = 5;

    private static final int MAX_VARINT_BITS = 64;
    private static final int MAX_GROUP_DEPTH = 100;

    /** An upper bound of the bytes, in UTF-8, of a text quoted in errors. */
    private static final int MAX_QUOTED_BYTES = 4 * (Quoted.MAX_LENGTH + 1);

    private static final ByteBuffer NONE = ByteBuffer.allocate(0);

    private final MessageBytes bytes;
    private ByteBuffer piece;
    private int pieceStart;
    private int pieceEnd;
    private int position;
    private int limit;

    private WireReader(MessageBytes bytes, ByteRange range) {
        this.bytes = bytes;
        this.position = range.start();
        this.limit = range.start() + range.length();
        this.piece = NONE;
    }

    static WireReader of(MessageBytes bytes) {
        return new WireReader(bytes, new ByteRange(0, bytes.length()));
    }

    static WireReader of(MessageBytes bytes, ByteRange range) {
        return new WireReader(bytes, range);
    }

    static int number(int tag) {
        return tag >>> 3;
    }

    static int type(int tag) {
        return tag & 7;
    }

    /** Says whether the message, or the part of it that was entered, has more fields. */
    boolean hasMore() {
        return position < limit;
    }

    /** Reads the tag of the next field. */
    int tag() {
        int tag = (int) varint();
        if (number(tag) == 0) {
            throw GrpcErrors.malformed();
        }
        return tag;
    }

    /** Reads a number of variable length. */
    long varint() {
        long value = 0;
        for (int shift = 0; shift < MAX_VARINT_BITS; shift += 7) {
            byte next = next();
            value |= (long) (next & 0x7F) << shift;
            if (next >= 0) {
                return value;
            }
        }
        throw GrpcErrors.malformed();
    }

    /** Reads a number of four bytes. */
    int fixed32() {
        if (pieceEnd - position >= Integer.BYTES && limit - position >= Integer.BYTES) {
            int value = piece.getInt(position - pieceStart);
            position += Integer.BYTES;
            return value;
        }
        int value = 0;
        for (int shift = 0; shift < Integer.SIZE; shift += Byte.SIZE) {
            value |= (next() & 0xFF) << shift;
        }
        return value;
    }

    /** Reads a number of eight bytes. */
    long fixed64() {
        long low = fixed32() & 0xFFFF_FFFFL;
        return (long) fixed32() << Integer.SIZE | low;
    }

    /** Reads the length of a string, a message or packed numbers. Checks that so many bytes follow. */
    int length() {
        int length = (int) varint();
        if (length < 0 || length > limit - position) {
            throw GrpcErrors.malformed();
        }
        return length;
    }

    /** Reads a length and skips the bytes that follow it. */
    ByteRange range() {
        int length = length();
        ByteRange range = new ByteRange(position, length);
        position += length;
        return range;
    }

    /**
     * Reads a length and the text that follows it.
     *
     * @param max the maximum length of the text in bytes
     * @param what the kind of text, for errors
     * @throws InferenceException if the text is longer
     */
    String string(int max, String what) {
        int length = length();
        if (length == 0) {
            return "";
        }
        if (length > max) {
            String beginning = new String(bytes(Math.min(length, MAX_QUOTED_BYTES)), StandardCharsets.UTF_8);
            throw InferenceException.tooLarge(what + " '" + Quoted.text(beginning) + "' takes " + length
                    + " bytes (expected: at most " + max + ")");
        }
        byte[] text = bytes(length);
        for (byte next : text) {
            if (next < 0) {
                return decoded(text);
            }
        }
        return new String(text, StandardCharsets.ISO_8859_1);
    }

    private byte[] bytes(int length) {
        byte[] text = new byte[length];
        for (int done = 0; done < length; ) {
            if (position >= pieceEnd) {
                open();
            }
            int count = Math.min(length - done, pieceEnd - position);
            piece.get(position - pieceStart, text, done, count);
            done += count;
            position += count;
        }
        return text;
    }

    private static String decoded(byte[] text) {
        try {
            return StandardCharsets.UTF_8
                    .newDecoder()
                    .decode(ByteBuffer.wrap(text))
                    .toString();
        } catch (CharacterCodingException _) {
            throw GrpcErrors.malformed();
        }
    }

    /** Narrows this reader to the length that it reads first; returns the argument for {@link #leave} to widen it. */
    int enter() {
        int length = length();
        int outer = limit;
        limit = position + length;
        return outer;
    }

    /** Widens this reader again after the part that was entered was read. */
    void leave(int outer) {
        limit = outer;
    }

    void skip(int tag) {
        skip(tag, 0);
    }

    private void skip(int tag, int depth) {
        switch (type(tag)) {
            case VARINT -> varint();
            case FIXED64 -> fixed64();
            case BYTES -> range();
            case FIXED32 -> fixed32();
            case START_GROUP -> skipGroup(number(tag), depth + 1);
            default -> throw GrpcErrors.malformed();
        }
    }

    private void skipGroup(int number, int depth) {
        if (depth > MAX_GROUP_DEPTH) {
            throw GrpcErrors.malformed();
        }
        while (true) {
            int tag = tag();
            if (type(tag) != END_GROUP) {
                skip(tag, depth);
            } else if (number(tag) == number) {
                return;
            } else {
                throw GrpcErrors.malformed();
            }
        }
    }

    private byte next() {
        if (position >= limit) {
            throw GrpcErrors.malformed();
        }
        if (position >= pieceEnd) {
            open();
        }
        return piece.get(position++ - pieceStart);
    }

    /** Opens the piece with the next byte. */
    private void open() {
        int index = bytes.pieceAt(position);
        piece = bytes.piece(index);
        pieceStart = bytes.start(index);
        pieceEnd = pieceStart + piece.limit();
    }
}
