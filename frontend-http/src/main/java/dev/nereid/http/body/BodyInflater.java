package dev.nereid.http.body;

import dev.nereid.api.InferenceException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.function.Supplier;
import java.util.zip.CRC32;
import java.util.zip.DataFormatException;
import java.util.zip.Inflater;

/**
 * Decompresses a gzip or zlib body as it arrives. Confined to one event loop; owns memory outside the heap until
 * closed.
 *
 * <p>Decompressed bytes go straight into the memory of the body, which is allocated as they come, so the limit applies
 * before the memory beyond it is allocated. Bytes behind the end are skipped, as the reference server does, but another
 * gzip file there belongs to the body.
 */
final class BodyInflater implements AutoCloseable {
    private enum State {
        GZIP_HEADER,
        DATA,
        GZIP_TRAILER,
        /** A gzip file ended; another may follow. */
        MEMBER_END,
        END
    }

    private static final ByteBuffer EMPTY = ByteBuffer.allocate(0);
    private static final int TRAILER_SIZE = 8;

    private final boolean gzip;
    private final Supplier<InferenceException> tooLarge;
    private final Inflater inflater;
    private final CRC32 checksum = new CRC32();
    private GzipHeader header = new GzipHeader();
    private State state;
    private ByteBuffer input = EMPTY;
    private long trailer;
    private int trailerBytes;

    /**
     * Creates an inflater.
     *
     * @param first the first byte, which identifies the format and is not consumed
     * @param tooLarge creates the error of a body that exceeds its memory
     */
    BodyInflater(byte first, Supplier<InferenceException> tooLarge) {
        this.gzip = first == GzipHeader.FIRST_BYTE;
        this.tooLarge = tooLarge;
        this.inflater = new Inflater(gzip);
        this.state = gzip ? State.GZIP_HEADER : State.DATA;
    }

    /** Sets the next piece, which must stay unchanged until it was inflated. The one before must have been inflated. */
    void setInput(ByteBuffer piece) {
        input = piece;
        if (state == State.DATA) {
            inflater.setInput(piece);
        }
    }

    /**
     * Inflates the current piece.
     *
     * @param target the memory for the decompressed bytes
     * @param maxBytes the number of bytes to produce at once
     * @return whether the piece is used up; if not, call this again
     * @throws InferenceException if the data is corrupt or too large, or if there is no memory for it
     */
    boolean inflate(BodyMemory target, int maxBytes) {
        long end = target.size() + maxBytes;
        while (target.size() < end) {
            if (state == State.DATA) {
                if (!inflateData(target, end - target.size())) {
                    return true;
                }
            } else if (state == State.END || !input.hasRemaining()) {
                return true;
            } else {
                acceptByte();
            }
        }
        return false;
    }

    /** Checks that the data is complete; throws {@link InferenceException} if its end is missing. */
    void finish() {
        if (state != State.END && state != State.MEMBER_END) {
            throw GzipHeader.corrupt("its end is missing");
        }
    }

    @Override
    public void close() {
        inflater.end();
    }

    /** Produces bytes or reaches the end of the data; returns whether either happened. */
    private boolean inflateData(BodyMemory target, long maxBytes) {
        MemorySegment writable = target.writable();
        boolean full = writable.byteSize() == 0;
        // Behind a full body there may still be the end of the data, which has no bytes.
        ByteBuffer output = full
                ? ByteBuffer.allocate(1)
                : writable.asSlice(0, Math.min(writable.byteSize(), maxBytes)).asByteBuffer();
        int length;
        try {
            length = inflater.inflate(output);
        } catch (DataFormatException e) {
            throw GzipHeader.corrupt(String.valueOf(e.getMessage()));
        }
        if (full && length > 0) {
            throw tooLarge.get();
        }
        if (gzip) {
            checksum.update(output.flip());
        }
        target.advance(length);
        if (inflater.finished()) {
            state = gzip ? State.GZIP_TRAILER : State.END;
            return true;
        } else if (inflater.needsDictionary()) {
            throw GzipHeader.corrupt("it needs a dictionary");
        }
        return length > 0;
    }

    private void acceptByte() {
        if (state == State.MEMBER_END) {
            if (input.get(input.position()) == GzipHeader.FIRST_BYTE) {
                beginMember();
            } else {
                state = State.END;
            }
            return;
        }
        byte next = input.get();
        if (state == State.GZIP_TRAILER) {
            acceptTrailer(next);
        } else if (header.accept(next)) {
            inflater.setInput(input);
            state = State.DATA;
        }
    }

    private void beginMember() {
        inflater.reset();
        checksum.reset();
        header = new GzipHeader();
        trailer = 0;
        trailerBytes = 0;
        state = State.GZIP_HEADER;
    }

    /** Accepts a byte of the checksum and the size, little-endian. */
    private void acceptTrailer(byte next) {
        trailer |= (next & 0xFFL) << (Byte.SIZE * trailerBytes);
        if (++trailerBytes == TRAILER_SIZE) {
            long expected = (inflater.getBytesWritten() << Integer.SIZE) | checksum.getValue();
            if (trailer != expected) {
                throw GzipHeader.corrupt("its checksum does not match");
            }
            state = State.MEMBER_END;
        }
    }
}
