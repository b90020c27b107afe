package dev.nereid.repository;

import dev.nereid.api.InferenceException;
import dev.nereid.spi.ErrorCode;
import java.nio.file.Path;
import java.util.NavigableMap;
import java.util.Optional;

/**
 * A remote model repository. Its models are copied to a local directory before they are loaded. Safe for use by any
 * thread; its methods block, on control threads.
 *
 * <p>All methods throw an {@link InferenceException}: {@link ErrorCode#UNAVAILABLE} if the storage cannot be reached or
 * a model changes while it is copied, so that a later call may succeed; {@link ErrorCode#INVALID_ARGUMENT} if a model
 * or its keys break a rule or a limit; {@link ErrorCode#NOT_FOUND} for a model that is not there.
 */
public interface RepositoryRoot {
    /** Returns the URL of the repository, for logs and errors. */
    String location();

    /**
     * Returns a local directory that stands for this repository and for no other. The models are not in it, but in the
     * directories of their {@linkplain ModelCopy copies}.
     */
    Path directory();

    /**
     * Lists the models, without copying any. Hidden directories and files outside of directories are ignored, with a
     * warning. Never deletes a copy: see {@link #retain}.
     *
     * @return the names of the models, each with its {@linkplain #fingerprint fingerprint}
     */
    NavigableMap<String, String> scan();

    /**
     * Returns the fingerprint of one model, without a scan of the repository: a digest of the names, sizes and ETags of
     * its objects.
     *
     * @return the fingerprint; empty if there is no such model
     */
    Optional<String> fingerprint(String model);

    /**
     * Copies a model, unless there is a complete local copy with its present fingerprint. Only objects that changed
     * are downloaded. A failed or interrupted call leaves the copies that were complete before.
     *
     * @return a complete and verified copy, leased to the caller
     */
    ModelCopy fetch(String model);

    /**
     * Deletes the local copies of all models but some, once they are not leased any more.
     *
     * @param models the names of models that exist
     */
    void retain(Iterable<String> models);
}
