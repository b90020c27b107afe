package dev.nereid.grpc.service;

import dev.nereid.api.InferenceException;
import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.function.LongConsumer;

/** An input stream that fails beyond a maximum length and reports bytes read. Confined to one thread. */
final class BoundedInput extends FilterInputStream {
    private final long max;
    private final LongConsumer listener;
    private long read;

    /**
     * Bounds a stream.
     *
     * @param max the maximum number of bytes that may be read
     * @param listener receives the number of bytes after each read; may throw
     */
    BoundedInput(InputStream stream, long max, LongConsumer listener) {
        super(stream);
        this.max = max;
        this.listener = listener;
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
            throw InferenceException.tooLarge("gRPC message exceeds maximum size " + max);
        }
        if (bytes > 0) {
            listener.accept(bytes);
        }
    }
}
