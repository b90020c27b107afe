package dev.nereid.grpc;

import java.util.zip.Deflater;

/** Compression level of inference responses. */
public enum ResponseCompression {
    /** Responses are not compressed. */
    NONE(Deflater.NO_COMPRESSION),
    /** The fastest compression. */
    LOW(Deflater.BEST_SPEED),
    /** A compromise between speed and size. */
    MEDIUM(6),
    /** The smallest output. */
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
