package dev.nereid.grpc;

import io.grpc.Compressor;
import io.grpc.CompressorRegistry;
import io.grpc.ServerCall;
import java.io.IOException;
import java.io.OutputStream;
import java.util.zip.Deflater;
import java.util.zip.GZIPOutputStream;

/** How much work goes into the compression of inference responses, for clients that take compressed ones. */
public enum ResponseCompression {
    /** Responses are not compressed. */
    NONE(Deflater.NO_COMPRESSION),
    /** As fast as it gets. */
    LOW(Deflater.BEST_SPEED),
    /** The usual compromise. */
    MEDIUM(6),
    /** As small as it gets. */
    HIGH(Deflater.BEST_COMPRESSION);

    private static final String GZIP = "gzip";

    private final int level;

    ResponseCompression(int level) {
        this.level = level;
    }

    /** Returns the compressions that a server offers. */
    CompressorRegistry registry() {
        CompressorRegistry registry = CompressorRegistry.newEmptyInstance();
        if (this != NONE) {
            registry.register(new Gzip(level));
        }
        return registry;
    }

    /** Has a call compress its messages if its client takes that; before its headers are sent. */
    void apply(ServerCall<?, ?> call) {
        if (this != NONE) {
            call.setCompression(GZIP);
        }
    }

    /** The compression that every client knows, at a level of choice. */
    private record Gzip(int level) implements Compressor {
        @Override
        public String getMessageEncoding() {
            return GZIP;
        }

        @Override
        public OutputStream compress(OutputStream target) throws IOException {
            return new Leveled(target, level);
        }
    }

    private static final class Leveled extends GZIPOutputStream {
        Leveled(OutputStream target, int level) throws IOException {
            super(target);
            def.setLevel(level);
        }
    }
}
