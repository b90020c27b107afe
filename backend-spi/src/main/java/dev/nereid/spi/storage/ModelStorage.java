package dev.nereid.spi.storage;

import dev.nereid.spi.BackendException;
import java.io.OutputStream;
import java.nio.file.Path;
import java.util.Optional;

/**
 * Lists and reads the objects of one remote model repository. Safe for use by any thread. <em>Implemented by
 * storages.</em>
 *
 * <p>The server calls it on control threads that may block, several at a time. Each method ends within a bounded time:
 * connecting, waiting for a response and waiting for the next bytes have timeouts, and retries are limited. An
 * interrupt of the thread may end a method early, with an exception.
 *
 * <p>Exceptions name the address and the reason in one line, and never hold credentials. Their codes:
 * {@link dev.nereid.spi.ErrorCode#NOT_FOUND NOT_FOUND} if the repository or the object does not exist,
 * {@link dev.nereid.spi.ErrorCode#INVALID_ARGUMENT INVALID_ARGUMENT} if the storage refuses the credentials or the
 * request, {@link dev.nereid.spi.ErrorCode#UNAVAILABLE UNAVAILABLE} if it cannot be reached or an object changed: the
 * server then tries again. The storage remains usable after each of them.
 *
 * @since 1.0
 */
public interface ModelStorage extends AutoCloseable {
    /**
     * Lists objects, one page at a call. The server asks for pages until one has no continuation; it stops earlier at
     * its own limit on the number of objects.
     *
     * @param prefix the beginning of the keys, such as {@code resnet/}; empty for all objects of the repository
     * @param continuation the {@linkplain StoragePage#continuation continuation} of the page before, opaque to the
     *     server; empty for the first page
     * @return at most a few thousand objects with keys that begin with the prefix, in any order; a listing of all pages
     *     names each object once. A prefix without objects has one empty page
     * @throws BackendException if the objects cannot be listed
     */
    StoragePage list(String prefix, String continuation);

    /**
     * Reads a whole object if its ETag is still the one that was listed.
     *
     * <p>The content must not be kept in memory as a whole. A storage that knows a checksum of the object verifies it.
     *
     * @param object an object of a listing
     * @param content receives the bytes in their order; owned by the server, and closed by it. It throws an
     *     {@link java.io.IOException} to end the read early, as at a full disk or at a limit: the method then throws
     *     any exception, which the server replaces by the reason it has itself
     * @throws BackendException if the object cannot be read, or not any more: some of its bytes may have been written
     */
    void read(StoredObject object, OutputStream content);

    /**
     * Returns the directory that the operator configured for local copies of this storage. Called once, after the
     * opening.
     *
     * @return an existing directory; empty to use that of the server
     */
    default Optional<Path> localDirectory() {
        return Optional.empty();
    }

    /**
     * Closes the storage, and frees its connections and threads. Called once, after the last use; may block for a few
     * seconds. Its exceptions are logged.
     */
    @Override
    void close();
}
