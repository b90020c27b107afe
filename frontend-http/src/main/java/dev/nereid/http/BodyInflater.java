package dev.nereid.http;

import dev.nereid.api.InferenceException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.function.Supplier;
import java.util.zip.CRC32;
import java.util.zip.DataFormatException;
import java.util.zip.Inflater;

/**
 * Inflates a body in gzip or zlib format as it arrives. Confined to one event loop; owns memory outside the heap until
 * closed.
 *
 * <p>What it makes goes straight into the memory of the body, which it asks for as it is needed: the limit is met before
 * the memory behind it is taken. Bytes behind the end are passed over, as the reference server does, but another gzip
 * file there belongs to the body.
 */
final class BodyInflater implements AutoCloseable {
    private enum State {
        GZIP_HEAD,
        DATA,
        GZIP_TAIL,
        /** A gzip file ended; another may follow. */
        BETWEEN,
        END
    }

    private static final ByteBuffer NOTHING = ByteBuffer.allocate(0);
    private static final int TAIL_SIZE = 8;

    private final boolean gzip;
    private final Supplier<InferenceException> tooLarge;
    private final Inflater inflater;
    private final CRC32 checksum = new CRC32();
    private GzipHead head = new GzipHead();
    private State state;
    private ByteBuffer input = NOTHING;
    private long tail;
    private int tailBytes;

    /**
     * Begins a body.
     *
     * @param first the first byte, which tells the format and is not taken yet
     * @param tooLarge makes the error of a body that its memory cannot hold
     */
    BodyInflater(byte first, Supplier<InferenceException> tooLarge) {
        this.gzip = first == GzipHead.FIRST_BYTE;
        this.tooLarge = tooLarge;
        this.inflater = new Inflater(gzip);
        this.state = gzip ? State.GZIP_HEAD : State.DATA;
    }

    /** Takes the next piece, which stays unchanged until all of it was inflated; the one before must have been. */
    void give(ByteBuffer piece) {
        input = piece;
        if (state == State.DATA) {
            inflater.setInput(piece);
        }
    }

    /**
     * Inflates what was given.
     *
     * @param target where to
     * @param most how many bytes to make in one go
     * @return whether all of it was inflated; if not, there is more to do
     * @throws InferenceException if it is broken or too large, or if there is no memory for it
     */
    boolean inflate(BodyMemory target, int most) {
        long enough = target.size() + most;
        while (target.size() < enough) {
            if (state == State.DATA) {
                if (!inflateData(target, enough - target.size())) {
                    return true;
                }
            } else if (state == State.END || !input.hasRemaining()) {
                return true;
            } else {
                takeByte();
            }
        }
        return false;
    }

    /**
     * Checks that nothing is missing.
     *
     * @throws InferenceException if the end did not come
     */
    void finish() {
        if (state != State.END && state != State.BETWEEN) {
            throw GzipHead.corrupt("its end is missing");
        }
    }

    @Override
    public void close() {
        inflater.end();
    }

    /** Makes some bytes, or comes to the end of the data; says whether it did any of that. */
    private boolean inflateData(BodyMemory target, long most) {
        MemorySegment room = target.room();
        boolean full = room.byteSize() == 0;
        // Behind a full body there may still be the end of the data, which has no bytes.
        ByteBuffer made = full
                ? ByteBuffer.allocate(1)
                : room.asSlice(0, Math.min(room.byteSize(), most)).asByteBuffer();
        int length;
        try {
            length = inflater.inflate(made);
        } catch (DataFormatException e) {
            throw GzipHead.corrupt(String.valueOf(e.getMessage()));
        }
        if (full && length > 0) {
            throw tooLarge.get();
        }
        if (gzip) {
            checksum.update(made.flip());
        }
        target.advance(length);
        if (inflater.finished()) {
            state = gzip ? State.GZIP_TAIL : State.END;
            return true;
        } else if (inflater.needsDictionary()) {
            throw GzipHead.corrupt("it needs a dictionary");
        }
        return length > 0;
    }

    private void takeByte() {
        if (state == State.BETWEEN) {
            if (input.get(input.position()) == GzipHead.FIRST_BYTE) {
                beginAnother();
            } else {
                state = State.END;
            }
            return;
        }
        byte next = input.get();
        if (state == State.GZIP_TAIL) {
            takeTail(next);
        } else if (head.take(next)) {
            inflater.setInput(input);
            state = State.DATA;
        }
    }

    private void beginAnother() {
        inflater.reset();
        checksum.reset();
        head = new GzipHead();
        tail = 0;
        tailBytes = 0;
        state = State.GZIP_HEAD;
    }

    /** Takes the checksum and the size, little-endian. */
    private void takeTail(byte next) {
        tail |= (next & 0xFFL) << (Byte.SIZE * tailBytes);
        if (++tailBytes == TAIL_SIZE) {
            long expected = (inflater.getBytesWritten() << Integer.SIZE) | checksum.getValue();
            if (tail != expected) {
                throw GzipHead.corrupt("its checksum does not match");
            }
            state = State.BETWEEN;
        }
    }
}
