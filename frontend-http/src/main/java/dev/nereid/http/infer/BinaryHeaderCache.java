package dev.nereid.http.infer;

import dev.nereid.api.frontend.DirectMappedCache;
import io.vertx.core.MultiMap;
import org.jspecify.annotations.Nullable;

/** Caches response headers of binary responses by their two lengths. Confined to one event loop. */
final class BinaryHeaderCache {
    private final DirectMappedCache<Entry> entries = new DirectMappedCache<>();

    private record Entry(long lengths, MultiMap headers) {}

    /**
     * Finds the headers of a response. Caches the headers if their lengths come for the second time in a row.
     *
     * @param jsonSize the number of bytes of the body that are JSON
     * @param size the number of bytes of the body
     * @return unmodifiable headers; {@code null} if they are not cached
     */
    @Nullable
    MultiMap find(int jsonSize, int size) {
        long lengths = (long) jsonSize << Integer.SIZE | size;
        int hash = 31 * jsonSize + size;
        Entry entry = entries.get(hash);
        if (entry != null && entry.lengths == lengths) {
            return entry.headers;
        }
        if (!entries.repeats(hash)) {
            return null;
        }
        MultiMap headers = ResponseTemplate.headers(jsonSize, size);
        entries.put(hash, new Entry(lengths, headers));
        return headers;
    }
}
