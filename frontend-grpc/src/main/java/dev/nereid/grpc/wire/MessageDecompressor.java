package dev.nereid.grpc.wire;

import dev.nereid.api.InferenceException;
import dev.nereid.spi.ErrorCode;
import io.grpc.Codec;
import io.grpc.Decompressor;
import io.grpc.DecompressorRegistry;
import io.netty.util.AsciiString;
import java.io.IOException;
import java.io.InputStream;
import java.util.Locale;
import java.util.zip.GZIPInputStream;
import java.util.zip.InflaterInputStream;
import java.util.zip.ZipException;
import org.jspecify.annotations.Nullable;

/**
 * Decompresses gzip messages, on event loops or on workers. Safe for use by any thread.
 *
 * <p>The transport calls {@link #decompress} when a message is first read, and wraps the result. So a body that is
 * created while {@link #detach} reads from a message belongs to that message.
 */
public final class MessageDecompressor implements Decompressor {
    /** The encodings that the server accepts, as sent to clients and named in errors. */
    public static final String ENCODINGS = "identity,deflate,gzip";

    private static final ThreadLocal<@Nullable Body> CURRENT = new ThreadLocal<>();

    /** Compressed bytes that inflate to 256 KiB at most, which an event loop may do. */
    private static final int SMALL_BYTES = 256;

    /** The compression format of a message. */
    private enum Format {
        /** The zlib format, as the protocol defines it. */
        DEFLATE,
        GZIP;

        private InputStream inflate(InputStream compressed) throws IOException {
            return switch (this) {
                case DEFLATE -> new ZlibInput(compressed);
                case GZIP -> new GZIPInputStream(compressed);
            };
        }
    }

    private final Format format;
    private final int maxBytes;

    private MessageDecompressor(Format format, int maxBytes) {
        this.format = format;
        this.maxBytes = maxBytes;
    }

    /** Returns the encodings that the server accepts, for decompressed messages of at most {@code maxBytes}. */
    public static DecompressorRegistry registry(int maxBytes) {
        return DecompressorRegistry.emptyInstance()
                .with(Codec.Identity.NONE, true)
                .with(new MessageDecompressor(Format.DEFLATE, maxBytes), true)
                .with(new MessageDecompressor(Format.GZIP, maxBytes), true);
    }

    /** Says whether the server accepts an encoding. */
    public static boolean isKnown(CharSequence encoding) {
        return AsciiString.contentEquals("gzip", encoding)
                || AsciiString.contentEquals("deflate", encoding)
                || AsciiString.contentEquals("identity", encoding);
    }

    @Override
    public String getMessageEncoding() {
        return format.name().toLowerCase(Locale.ROOT);
    }

    @Override
    public InputStream decompress(InputStream compressed) throws IOException {
        Body body = new Body(compressed, format, maxBytes);
        CURRENT.set(body);
        return body;
    }

    /** Detaches a stream's compressed message; the caller owns it. {@code null} if it is small or not compressed. */
    public static @Nullable Body detach(InputStream stream) throws IOException {
        CURRENT.remove();
        stream.available();
        Body body = CURRENT.get();
        CURRENT.remove();
        if (body == null || body.compressedBytes <= SMALL_BYTES) {
            return null;
        }
        body.detached = true;
        return body;
    }

    /** A compressed message. Confined to one thread at a time. */
    public static final class Body extends InputStream {
        private final InputStream compressed;
        private final Format format;
        private final int compressedBytes;
        private final int maxBytes;
        private long read;
        private @Nullable InputStream inflated;
        private boolean detached;

        private Body(InputStream compressed, Format format, int maxBytes) throws IOException {
            this.format = format;
            this.maxBytes = maxBytes;
            this.compressed = compressed;
            this.compressedBytes = compressed.available();
        }

        /** Returns the number of bytes as received. */
        public int compressedBytes() {
            return compressedBytes;
        }

        private InputStream inflated() throws IOException {
            InputStream stream = inflated;
            if (stream == null) {
                stream = format.inflate(compressed);
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
            if (read > maxBytes) { // worded as the transport does
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
            if (!detached) {
                release();
            }
        }

        public void release() throws IOException {
            if (inflated != null) {
                inflated.close(); // closes the compressed stream, too
            } else {
                compressed.close();
            }
        }
    }

    /** Inflates the zlib format. Fails if a dictionary is needed, which otherwise looks like the stream's end. */
    private static final class ZlibInput extends InflaterInputStream {
        ZlibInput(InputStream compressed) {
            super(compressed);
        }

        @Override
        public int read(byte[] target, int offset, int count) throws IOException {
            int done = super.read(target, offset, count);
            if (done < 0 && inf.needsDictionary()) {
                throw new ZipException("a dictionary is needed");
            }
            return done;
        }
    }
}
