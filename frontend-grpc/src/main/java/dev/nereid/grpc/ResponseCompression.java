package dev.nereid.grpc;

import java.util.zip.Deflater;

/** Compression level of inference responses. */
public enum ResponseCompression {
    /** Responses are not compressed. */
    NONE(Deflater.NO_COMPRESSION),
    /** As fast as it gets. */
    LOW(Deflater.BEST_SPEED),
    /** The usual compromise. */
    MEDIUM(6),
    /** As small as it gets. */
    HIGH(Deflater.BEST_COMPRESSION);

    private final int level;

    ResponseCompression(int level) {
        this.level = level;
    }

    /** Returns the level, as of {@link Deflater}; 0 for no compression. */
    int level() {
        return level;
    }
}
