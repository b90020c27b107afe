package dev.nereid.spi.storage;

import static java.util.Objects.requireNonNull;

import java.time.Instant;

/**
 * An object of a remote model repository. Immutable.
 *
 * <p>It is a file, or a directory if its key ends with a slash.
 *
 * <p>Keys come from outside as they are: the server checks them before it uses them as paths.
 *
 * @param key the path below the repository's URL, separated by slashes: {@code resnet/1/model.onnx}
 * @param size the size of the content in bytes
 * @param etag identifies the content: it changes if the content does; opaque
 * @param modified when the object was written; compared with nothing but the same object's earlier times
 * @since 1.0
 */
public record StoredObject(String key, long size, String etag, Instant modified) {
    /**
     * Checks the components.
     *
     * @throws IllegalArgumentException if the key or the ETag is empty, or the size is negative
     */
    public StoredObject {
        requireNonNull(key, "key");
        requireNonNull(etag, "etag");
        requireNonNull(modified, "modified");
        if (key.isEmpty()) {
            throw new IllegalArgumentException("key: empty (expected: a path)");
        }
        if (size < 0) {
            throw new IllegalArgumentException("size: " + size + " (expected: >= 0)");
        }
        if (etag.isEmpty()) {
            throw new IllegalArgumentException("etag: empty (expected: an identifier of the content)");
        }
    }
}
