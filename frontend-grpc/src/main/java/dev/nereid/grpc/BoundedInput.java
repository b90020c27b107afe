package dev.nereid.grpc;

import dev.nereid.api.InferenceException;
import dev.nereid.spi.ErrorCode;
import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;

/** A stream that fails when more is read of it than it may hold. Confined to one thread. */
final class BoundedInput extends FilterInputStream {
    private final long max;
    private long read;

    BoundedInput(InputStream stream, long max) {
        super(stream);
        this.max = max;
    }

    @Override
    public int read() throws IOException {
        int next = super.read();
        count(next < 0 ? 0 : 1);
        return next;
    }

    @Override
    public int read(byte[] target, int offset, int length) throws IOException {
        int done = super.read(target, offset, length);
        count(Math.max(done, 0));
        return done;
    }

    @Override
    public long skip(long count) throws IOException {
        long done = super.skip(count);
        count(done);
        return done;
    }

    private void count(long bytes) {
        read += bytes;
        if (read > max) {
            throw new InferenceException(
                    ErrorCode.INVALID_ARGUMENT,
                    "request: more than " + max + " bytes (expected: at most " + max
                            + ", since it is read into the heap; a larger heap allows more)");
        }
    }
}
