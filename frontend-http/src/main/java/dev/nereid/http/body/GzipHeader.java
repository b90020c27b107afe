package dev.nereid.http.body;

import dev.nereid.api.InferenceException;
import dev.nereid.http.json.JsonFields;

/** Parses a gzip header (RFC 1952) byte by byte. Confined to one thread. */
final class GzipHeader {
    static final byte FIRST_BYTE = 0x1F;

    private static final byte SECOND_BYTE = (byte) 0x8B;
    private static final byte DEFLATED = 8;
    private static final int FIXED_SIZE = 10;
    private static final int CHECKSUM = 2;
    private static final int CHECKSUM_SIZE = 2;
    private static final int EXTRA = 4;
    private static final int NAME = 8;
    private static final int COMMENT = 16;
    private static final int RESERVED = 0xE0;

    private int position;
    private int flags;
    /** The number of bytes of the current part that were accepted. */
    private int acceptedBytes;

    private int extraSize;

    /** Accepts the next byte; returns whether it was the last. Throws {@link InferenceException} for no gzip header. */
    boolean accept(byte next) {
        if (position < FIXED_SIZE) {
            acceptFixed(next);
        } else if ((flags & EXTRA) != 0) {
            acceptExtra(next);
        } else if ((flags & NAME) != 0) {
            flags &= next == 0 ? ~NAME : ~0;
        } else if ((flags & COMMENT) != 0) {
            flags &= next == 0 ? ~COMMENT : ~0;
        } else if (++acceptedBytes == CHECKSUM_SIZE) {
            flags &= ~CHECKSUM;
        }
        return position == FIXED_SIZE && (flags & (EXTRA | NAME | COMMENT | CHECKSUM)) == 0;
    }

    private void acceptFixed(byte next) {
        boolean wrong = switch (position) {
            case 0 -> next != FIRST_BYTE;
            case 1 -> next != SECOND_BYTE;
            case 2 -> next != DEFLATED;
            case 3 -> (next & RESERVED) != 0;
            default -> false;
        };
        if (wrong) {
            throw corrupt("this is not gzip");
        }
        if (position == 3) {
            flags = next;
        }
        position++;
    }

    /** Accepts two bytes of a length, and then as many bytes. */
    private void acceptExtra(byte next) {
        acceptedBytes++;
        if (acceptedBytes <= 2) {
            extraSize |= (next & 0xFF) << (acceptedBytes == 1 ? 0 : Byte.SIZE);
        }
        if (acceptedBytes >= 2 && acceptedBytes == extraSize + 2) {
            flags &= ~EXTRA;
            acceptedBytes = 0;
        }
    }

    /** Returns the error of compressed data that cannot be read. */
    static InferenceException corrupt(String problem) {
        return JsonFields.invalid("Unable to decompress the request: " + problem);
    }
}
