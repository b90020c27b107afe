package dev.nereid.http.infer;

import io.vertx.core.MultiMap;
import org.jspecify.annotations.Nullable;

/**
 * Caches response headers of binary responses by their two lengths. Confined to one event loop. Holds at most {@value
 * #MAX_ENTRIES}.
 */
final class BinaryHeaderCache {
    /** A power of two. */
    private static final int MAX_ENTRIES = 64;

    private final @Nullable Entry[] entries = new Entry[MAX_ENTRIES];

    /** For each place the lengths that came last, kept or not: what comes but once is not worth its place. */
    private final long[] lastLengths = new long[MAX_ENTRIES];

    private record Entry(long lengths, MultiMap headers) {}

    /**
     * Finds the headers of a response.
     *
     * @param jsonSize how many bytes of its body are JSON
     * @param size how many bytes its body has
     * @return headers that cannot be changed; {@code null} if the lengths did not come lately
     */
    @Nullable
    MultiMap find(int jsonSize, int size) {
        long lengths = (long) jsonSize << Integer.SIZE | size;
        int slot = (31 * jsonSize + size) & MAX_ENTRIES - 1;
        Entry entry = entries[slot];
        if (entry != null && entry.lengths == lengths) {
            return entry.headers;
        }
        if (lastLengths[slot] != lengths) {
            lastLengths[slot] = lengths;
            return null;
        }
        MultiMap headers = ResponseTemplate.headers(jsonSize, size);
        entries[slot] = new Entry(lengths, headers);
        return headers;
    }
}
