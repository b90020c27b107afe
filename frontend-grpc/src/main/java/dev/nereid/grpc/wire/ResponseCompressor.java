package dev.nereid.grpc.wire;

import dev.nereid.api.InferResponse;
import io.grpc.Compressor;
import io.grpc.CompressorRegistry;
import io.grpc.Metadata;
import java.io.IOException;
import java.io.OutputStream;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import java.util.zip.Deflater;
import java.util.zip.DeflaterOutputStream;
import java.util.zip.GZIPOutputStream;

/**
 * Compresses inference responses and decides which of them an event loop may write. Immutable.
 *
 * @param level the level, as of {@link Deflater}; 0 for no compression
 */
public record ResponseCompressor(int level) {
    public static final ResponseCompressor NONE = new ResponseCompressor(Deflater.NO_COMPRESSION);

    private static final String GZIP = "gzip";
    private static final String DEFLATE = "deflate";

    private static final Metadata.Key<String> ACCEPTED =
            Metadata.Key.of("grpc-accept-encoding", Metadata.ASCII_STRING_MARSHALLER);

    /** The bytes that take about a quarter of a millisecond to compress. */
    private static final long MAX_COMPRESSED_BYTES = 8 << 10;

    private boolean isEnabled() {
        return level != Deflater.NO_COMPRESSION;
    }

    /** Returns the encodings that the server offers. */
    public CompressorRegistry registry() {
        CompressorRegistry registry = CompressorRegistry.newEmptyInstance();
        if (isEnabled()) {
            registry.register(new Gzip(level));
            registry.register(new Deflate(level));
        }
        return registry;
    }

    /** Says whether a response takes too long to write on an event loop. */
    public boolean isSlow(InferResponse response) {
        long bytes = 0;
        for (int i = 0; i < response.outputs().size(); i++) {
            bytes += response.outputs().get(i).tensor().byteSize();
        }
        return bytes > maxOnEventLoop();
    }

    /** Returns how many bytes of outputs an event loop may write at a time. */
    public long maxOnEventLoop() {
        return isEnabled() ? MAX_COMPRESSED_BYTES : EventLoopLimits.MAX_COPIED_BYTES;
    }

    /**
     * Chooses the encoding of responses from the encodings that the client accepts. As gRPC for C++ does, prefers gzip
     * at the lowest level and deflate at higher ones.
     *
     * @return the name of the encoding; empty for none
     */
    public Optional<String> encoding(Metadata headers) {
        String accepted = isEnabled() ? headers.get(ACCEPTED) : null;
        if (accepted == null) {
            return Optional.empty();
        }
        List<String> encodings =
                Stream.of(accepted.split(",", -1)).map(String::strip).toList();
        boolean isLow = level == Deflater.BEST_SPEED;
        return Stream.of(isLow ? GZIP : DEFLATE, isLow ? DEFLATE : GZIP)
                .filter(encodings::contains)
                .findFirst();
    }

    /** Compresses messages with gzip at the configured level. */
    private record Gzip(int level) implements Compressor {
        @Override
        public String getMessageEncoding() {
            return GZIP;
        }

        @Override
        public OutputStream compress(OutputStream target) throws IOException {
            return new LeveledGzipStream(target, level);
        }
    }

    /** Compresses messages with {@code deflate}, which is the zlib format, at the configured level. */
    private record Deflate(int level) implements Compressor {
        @Override
        public String getMessageEncoding() {
            return DEFLATE;
        }

        @Override
        public OutputStream compress(OutputStream target) {
            return new LeveledZlibStream(target, level);
        }
    }

    private static final class LeveledZlibStream extends DeflaterOutputStream {
        LeveledZlibStream(OutputStream target, int level) {
            super(target); // its own deflater ends with the stream, unlike one passed in
            def.setLevel(level);
        }
    }

    private static final class LeveledGzipStream extends GZIPOutputStream {
        LeveledGzipStream(OutputStream target, int level) throws IOException {
            super(target);
            def.setLevel(level);
        }
    }
}
