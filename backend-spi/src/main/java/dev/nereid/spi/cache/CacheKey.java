package dev.nereid.spi.cache;

import java.util.HexFormat;

/**
 * Key of a cached response: a 128-bit digest of the request. Immutable.
 *
 * <p>The bits come from a cryptographic hash, so that they are spread evenly and two requests with one key cannot be
 * found.
 *
 * @param high the first 64 bits
 * @param low the last 64 bits
 * @since 1.0
 */
public record CacheKey(long high, long low) {
    /**
     * Returns the key as text, for caches behind a network protocol.
     *
     * @return 32 hexadecimal digits in lower case
     */
    public String text() {
        HexFormat hex = HexFormat.of();
        return hex.toHexDigits(high) + hex.toHexDigits(low);
    }

    /** Returns {@link #text()}. */
    @Override
    public String toString() {
        return text();
    }
}
