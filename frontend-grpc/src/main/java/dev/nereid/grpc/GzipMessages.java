package dev.nereid.grpc;

import dev.nereid.api.InferenceException;
import dev.nereid.spi.ErrorCode;
import io.grpc.Codec;
import io.grpc.Decompressor;
import io.grpc.DecompressorRegistry;
import java.io.IOException;
import java.io.InputStream;
import java.util.zip.GZIPInputStream;
import org.jspecify.annotations.Nullable;

/**
 * Decompresses messages, which may go on after the transport has closed them. Safe for use by any thread.
 *
 * <p>The transport asks for decompression when a message is first looked at, and wraps what it gets. So what is made while
 * {@link #take} looks at a message belongs to that message.
 */
final class GzipMessages implements Decompressor {
    private static final ThreadLocal<@Nullable Body> LAST = new ThreadLocal<>();

    /** What makes 256 KiB at most, which an event loop may do. */
    private static final int SMALL_BYTES = 256;

    private final int maxBytes;

    private GzipMessages(int maxBytes) {
        this.maxBytes = maxBytes;
    }

    /**
     * Returns the compressions that a server understands.
     *
     * @param maxBytes how long a message may be, decompressed
     */
    static DecompressorRegistry registry(int maxBytes) {
        return DecompressorRegistry.emptyInstance()
                .with(new GzipMessages(maxBytes), true)
                .with(Codec.Identity.NONE, false);
    }

    @Override
    public String getMessageEncoding() {
        return "gzip";
    }

    @Override
    public InputStream decompress(InputStream compressed) throws IOException {
        Body body = new Body(compressed, maxBytes);
        LAST.set(body);
        return body;
    }

    /** Takes over what a stream of the transport decompresses, if it does; it belongs to the caller then. */
    static @Nullable Body take(InputStream stream) throws IOException {
        LAST.remove();
        stream.available();
        Body body = LAST.get();
        LAST.remove();
        if (body == null || body.compressedBytes <= SMALL_BYTES) {
            return null;
        }
        body.taken = true;
        return body;
    }

    /** A compressed message. Confined to one thread at a time. */
    static final class Body extends InputStream {
        private final InputStream compressed;
        private final int compressedBytes;
        private final int maxBytes;
        private long read;
        private @Nullable InputStream inflated;
        private boolean taken;

        private Body(InputStream compressed, int maxBytes) throws IOException {
            this.maxBytes = maxBytes;
            this.compressed = compressed;
            this.compressedBytes = compressed.available();
        }

        /** Returns what the message takes as it came. */
        int compressedBytes() {
            return compressedBytes;
        }

        private InputStream inflated() throws IOException {
            InputStream stream = inflated;
            if (stream == null) {
                stream = new GZIPInputStream(compressed);
                inflated = stream;
            }
            return stream;
        }

        @Override
        public int read() throws IOException {
            int next = inflated().read();
            count(next < 0 ? 0 : 1);
            return next;
        }

        @Override
        public int read(byte[] target, int offset, int count) throws IOException {
            int done = inflated().read(target, offset, count);
            count(Math.max(done, 0));
            return done;
        }

        private void count(int bytes) {
            read += bytes;
            if (read > maxBytes) { // in the words of the transport
                throw new InferenceException(
                        ErrorCode.INVALID_ARGUMENT, "Decompressed gRPC message exceeds maximum size " + maxBytes);
            }
        }

        @Override
        public int available() {
            return 0;
        }

        @Override
        public void close() throws IOException {
            if (!taken) {
                release();
            }
        }

        /** Gives back the memory of a message that was taken over. */
        void release() throws IOException {
            compressed.close();
        }
    }
}
