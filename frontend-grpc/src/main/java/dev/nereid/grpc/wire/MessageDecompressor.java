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
 * <p>The transport asks for decompression when a message is first looked at, and wraps what it gets. So what is made while
 * {@link #detach} looks at a message belongs to that message.
 */
public final class MessageDecompressor implements Decompressor {
    /** What a server understands, as it tells its clients and writes into errors. */
    public static final String ENCODINGS = "identity,deflate,gzip";

    private static final ThreadLocal<@Nullable Body> CURRENT = new ThreadLocal<>();

    /** What makes 256 KiB at most, which an event loop may do. */
    private static final int SMALL_BYTES = 256;

    /** How a message is compressed. */
    private enum Format {
        /** The format of zlib, as the protocol has it. */
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

    /**
     * Returns the compressions that a server understands.
     *
     * @param maxBytes how long a message may be, decompressed
     */
    public static DecompressorRegistry registry(int maxBytes) {
        return DecompressorRegistry.emptyInstance()
                .with(Codec.Identity.NONE, true)
                .with(new MessageDecompressor(Format.DEFLATE, maxBytes), true)
                .with(new MessageDecompressor(Format.GZIP, maxBytes), true);
    }

    /** Says whether a server understands an encoding. */
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

    /** Takes over what a stream of the transport decompresses, if it does; it belongs to the caller then. */
    public static @Nullable Body detach(InputStream stream) throws IOException {
        CURRENT.remove();
        stream.available();
        Body body = CURRENT.get();
        CURRENT.remove();
        if (body == null || body.compressedBytes <= SMALL_BYTES) {
            return null;
        }
        body.taken = true;
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
        private boolean taken;

        private Body(InputStream compressed, Format format, int maxBytes) throws IOException {
            this.format = format;
            this.maxBytes = maxBytes;
            this.compressed = compressed;
            this.compressedBytes = compressed.available();
        }

        /** Returns what the message takes as it came. */
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
        public void release() throws IOException {
            if (inflated != null) {
                inflated.close(); // and what is compressed with it
            } else {
                compressed.close();
            }
        }
    }

    /** Inflates the format of zlib. Fails where a dictionary is needed, which would look like the end. */
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
