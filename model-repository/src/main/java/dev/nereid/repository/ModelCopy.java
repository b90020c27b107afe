package dev.nereid.repository;

import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * A complete local copy of a model, leased to its holder. Its files stay and do not change until {@link #close}. Safe
 * for use by any thread.
 */
public final class ModelCopy implements AutoCloseable {
    private final ModelDirectory directory;
    private final String fingerprint;
    private final List<CopiedFile> files;
    private final Runnable release;
    private final AtomicBoolean closed = new AtomicBoolean();

    /**
     * Creates a lease on a copy.
     *
     * @param fingerprint the fingerprint of the objects that were copied
     * @param files the files that were copied
     * @param release ends the lease; called once
     */
    public ModelCopy(ModelDirectory directory, String fingerprint, List<CopiedFile> files, Runnable release) {
        this.fingerprint = fingerprint;
        this.directory = directory;
        this.files = List.copyOf(files);
        this.release = release;
    }

    /** Returns a model that is used where it lies. */
    static ModelCopy inPlace(ModelDirectory directory) {
        return new ModelCopy(directory, "", List.of(), () -> {});
    }

    /** Returns the same copy with another key of the model. Takes over the lease. */
    ModelCopy as(String key) {
        return new ModelCopy(directory.as(key), fingerprint, files, this::close);
    }

    public ModelDirectory directory() {
        return directory;
    }

    /** Returns the fingerprint of the objects that were copied; empty for a model that is used where it lies. */
    public String fingerprint() {
        return fingerprint;
    }

    /**
     * Reads the state of the files. The state of a copy is the state of its objects, so that a part that has not
     * changed is the same in another copy. Blocks.
     *
     * @param configFile the file that configures the model; empty if there is none
     * @throws dev.nereid.api.InferenceException if the files cannot be read
     */
    public ModelFingerprint state(Optional<Path> configFile) {
        return fingerprint.isEmpty()
                ? ModelFingerprint.of(directory, configFile)
                : ModelFingerprint.ofCopy(directory, configFile, files);
    }

    /** Ends the lease. The files may be deleted, now or later. Further calls have no effect. */
    @Override
    public void close() {
        if (closed.compareAndSet(false, true)) {
            release.run();
        }
    }

    /**
     * A file of a local copy of a model, as the remote storage lists it. Immutable.
     *
     * @param path its path in the model's directory
     * @param size its size in bytes
     * @param etag the ETag of its object
     */
    public record CopiedFile(String path, long size, String etag) {}
}
