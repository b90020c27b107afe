package dev.nereid.grpc;

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
 * <p>The transport wraps what a decompressor returns, and parses it next on the same thread. So the body that was made last
 * on a thread is the one that is parsed there, which {@link #take} checks.
 */
final class GzipMessages implements Decompressor {
    private static final ThreadLocal<@Nullable Body> LAST = new ThreadLocal<>();

    /** What makes 256 KiB at most, which an event loop may do. */
    private static final int SMALL_BYTES = 256;

    private GzipMessages() {}

    /** Returns the compressions that a server understands. */
    static DecompressorRegistry registry() {
        return DecompressorRegistry.emptyInstance()
                .with(new GzipMessages(), true)
                .with(Codec.Identity.NONE, false);
    }

    @Override
    public String getMessageEncoding() {
        return "gzip";
    }

    @Override
    public InputStream decompress(InputStream compressed) throws IOException {
        Body body = new Body(compressed);
        LAST.set(body);
        return body;
    }

    /** Takes over what a stream of the transport decompresses, if it does; it belongs to the caller then. */
    static @Nullable Body take(InputStream stream) throws IOException {
        Body body = LAST.get();
        LAST.remove();
        if (body == null || body.compressedBytes <= SMALL_BYTES) {
            return null;
        }
        stream.available();
        if (!body.asked) {
            return null;
        }
        body.taken = true;
        return body;
    }

    /** A compressed message. Confined to one thread at a time. */
    static final class Body extends InputStream {
        private final InputStream compressed;
        private final int compressedBytes;
        private @Nullable InputStream inflated;
        private boolean asked;
        private boolean taken;

        private Body(InputStream compressed) throws IOException {
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
            return inflated().read();
        }

        @Override
        public int read(byte[] target, int offset, int count) throws IOException {
            return inflated().read(target, offset, count);
        }

        @Override
        public int available() {
            asked = true;
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
