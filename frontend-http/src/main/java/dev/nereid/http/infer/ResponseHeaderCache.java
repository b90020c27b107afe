package dev.nereid.http.infer;

import dev.nereid.api.frontend.DirectMappedCache;
import dev.nereid.http.body.ContentTypes;
import dev.nereid.http.body.RequestBodyHeaders;
import io.vertx.core.MultiMap;
import io.vertx.core.http.HttpHeaders;
import org.jspecify.annotations.Nullable;

/** Response header cache: headers of binary responses by their two lengths. Confined to one event loop. */
final class ResponseHeaderCache {
    private final DirectMappedCache<Entry> entries = new DirectMappedCache<>();

    private record Entry(int jsonSize, int size, MultiMap headers) {}

    /**
     * Finds the unmodifiable headers of a response of {@code size} bytes, {@code jsonSize} of which are JSON;
     * {@code null} if they are not cached. Caches them if their lengths come for the second time in a row.
     */
    @Nullable
    MultiMap find(int jsonSize, int size) {
        int hash = 31 * jsonSize + size;
        Entry entry = entries.get(hash);
        if (entry != null && entry.jsonSize == jsonSize && entry.size == size) {
            return entry.headers;
        }
        if (!entries.repeats(hash)) {
            return null;
        }
        MultiMap headers = HttpHeaders.headers()
                .set(HttpHeaders.CONTENT_TYPE, ContentTypes.OCTET_STREAM)
                .set(RequestBodyHeaders.JSON_LENGTH, HttpHeaders.createOptimized(Integer.toString(jsonSize)))
                .set(HttpHeaders.CONTENT_LENGTH, HttpHeaders.createOptimized(Integer.toString(size)))
                .copy(false);
        entries.put(hash, new Entry(jsonSize, size, headers));
        return headers;
    }
}
