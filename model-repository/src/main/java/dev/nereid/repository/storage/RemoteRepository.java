package dev.nereid.repository.storage;

import dev.nereid.api.InferenceException;
import dev.nereid.repository.ModelCopy;
import dev.nereid.repository.RepositoryRoot;
import dev.nereid.repository.storage.StorageListing.ModelListing;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.storage.ModelStorage;
import java.io.IOException;
import java.nio.file.FileSystemException;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.NavigableMap;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A model repository in a remote storage, with local copies of its models. Owns the storage. Safe for use by any thread.
 *
 * <p>A copy is downloaded into a directory for partial copies; its sizes are compared with the listing and its ETags
 * with a second listing after the last object; then its manifest is written and it is renamed. So a copy is complete or
 * not there, whenever the process ends.
 */
public final class RemoteRepository implements RepositoryRoot, AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(RemoteRepository.class);

    /** How often a model is copied that changes meanwhile. */
    private static final int MAX_COPIES = 3;

    private final String location;
    private final ModelStorage storage;
    private final StorageListing listing;
    private final LocalCopies copies;
    private final LocalFiles files;
    private final StorageLimits limits;
    private final LongSupplier nanoTime;
    private final Semaphore downloads;

    RemoteRepository(
            String location,
            ModelStorage storage,
            LocalCopies copies,
            LocalFiles files,
            StorageLimits limits,
            LongSupplier nanoTime) {
        this.location = location;
        this.storage = storage;
        this.copies = copies;
        this.files = files;
        this.limits = limits;
        this.nanoTime = nanoTime;
        listing = new StorageListing(storage, limits, location);
        downloads = new Semaphore(limits.downloads(), true);
    }

    /**
     * Opens a repository with the storage of its scheme, and deletes incomplete local copies. Blocks meanwhile.
     *
     * @param options directory and limits
     * @param storages opens the storage of a URL, which the repository owns
     * @return the repository, owned by the caller
     * @throws IllegalArgumentException if there is no storage for the URL, or if the directory of local copies cannot be
     *     used
     */
    public static RemoteRepository open(String url, StorageOptions options, Function<String, ModelStorage> storages) {
        ModelStorage storage = storages.apply(url);
        boolean opened = false;
        try {
            RemoteRepository repository = open(
                    url,
                    storage,
                    storage.localDirectory().orElse(options.copies()),
                    new LocalFiles.Disk(),
                    options.limits(),
                    System::nanoTime);
            opened = true;
            return repository;
        } catch (IOException e) {
            throw new IllegalArgumentException("model repository '" + url + "': local copies cannot be kept: " + e, e);
        } finally {
            if (!opened) {
                storage.close();
            }
        }
    }

    /** Opens a repository with a storage, which it owns from then on unless this fails. */
    static RemoteRepository open(
            String location,
            ModelStorage storage,
            Path base,
            LocalFiles files,
            StorageLimits limits,
            LongSupplier nanoTime)
            throws IOException {
        CopiesDirectory directory = CopiesDirectory.open(base, location, files);
        boolean opened = false;
        try {
            LocalCopies copies = new LocalCopies(directory);
            opened = true;
            return new RemoteRepository(location, storage, copies, files, limits, nanoTime);
        } finally {
            if (!opened) {
                directory.close();
            }
        }
    }

    @Override
    public String location() {
        return location;
    }

    @Override
    public Path directory() {
        return copies.directory().path();
    }

    @Override
    public NavigableMap<String, String> scan() {
        try {
            return listing.models();
        } catch (BackendException e) {
            throw failure("cannot be listed", e.code(), e);
        }
    }

    @Override
    public Optional<String> fingerprint(String model) {
        checkName(model);
        try {
            return listing.fingerprint(model);
        } catch (BackendException e) {
            throw failure("model '" + model + "' cannot be listed", e.code(), e);
        }
    }

    @Override
    public ModelCopy fetch(String model) {
        checkName(model);
        String problem = "model '" + model + "' cannot be copied";
        try {
            downloads.acquire();
            try {
                return copy(model);
            } finally {
                downloads.release();
            }
        } catch (BackendException e) {
            throw failure(problem, e.code(), e);
        } catch (IOException e) {
            LOG.atWarn().addKeyValue("model", model).setCause(e).log("local copy of model failed (model '{}')", model);
            throw failure(problem, ErrorCode.UNAVAILABLE, e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw failure(problem, ErrorCode.UNAVAILABLE, e);
        }
    }

    @Override
    public void retain(Iterable<String> models) {
        Set<String> names = new HashSet<>();
        models.forEach(names::add);
        copies.retain(names);
    }

    /** Closes the storage. The local copies stay, for the next start. Called once, after the last model was closed. */
    @Override
    public void close() {
        copies.close();
        storage.close();
    }

    private ModelCopy copy(String model) throws IOException {
        ModelListing listed = listing.model(model);
        for (int attempts = 0; attempts < MAX_COPIES; attempts++) {
            Optional<ModelCopy> present = copies.acquire(model, listed.fingerprint());
            if (present.isPresent()) {
                return present.get();
            }
            Path partial = copies.directory().newPartial();
            boolean installed = false;
            try {
                CopyManifest manifest = download(listed, partial);
                ModelListing current = listing.model(model);
                if (current.fingerprint().equals(listed.fingerprint())) {
                    ModelCopy copy = copies.install(partial, manifest);
                    installed = true;
                    return copy;
                }
                listed = current;
            } finally {
                if (!installed) {
                    copies.directory().discard(partial);
                }
            }
        }
        throw new BackendException(
                ErrorCode.UNAVAILABLE,
                "it changed " + MAX_COPIES + " times while it was copied (expected: objects that stay as they are);"
                        + " load it again when the upload is done");
    }

    private CopyManifest download(ModelListing listed, Path partial) throws IOException {
        long started = nanoTime.getAsLong();
        ModelDownload download = new ModelDownload(storage, files, limits, nanoTime, partial);
        Optional<ModelCopy> earlier = copies.acquireAny(listed.model());
        CopyManifest manifest;
        try {
            manifest = download.download(listed, earlier);
        } finally {
            earlier.ifPresent(ModelCopy::close);
        }
        download.complete(manifest);
        LOG.atInfo()
                .addKeyValue("model", listed.model())
                .addKeyValue("repository", location)
                .addKeyValue("files", listed.files().size())
                .addKeyValue("bytes", listed.bytes())
                .addKeyValue("elapsedMillis", TimeUnit.NANOSECONDS.toMillis(nanoTime.getAsLong() - started))
                .log(
                        "model copied from its repository (model '{}', repository '{}', {} bytes, after {} ms)",
                        listed.model(),
                        location,
                        listed.bytes(),
                        TimeUnit.NANOSECONDS.toMillis(nanoTime.getAsLong() - started));
        return manifest;
    }

    private void checkName(String model) {
        Optional<String> violation = ObjectKeys.nameViolation(model);
        if (violation.isPresent()) {
            throw new InferenceException(
                    ErrorCode.INVALID_ARGUMENT,
                    "model repository '" + location + "': model name '" + ObjectKeys.printable(model) + "' has "
                            + violation.get() + " (expected: the name of a directory)");
        }
    }

    private InferenceException failure(String problem, ErrorCode code, Exception cause) {
        LOG.atDebug()
                .addKeyValue("repository", location)
                .setCause(cause)
                .log("{} (repository '{}')", problem, location);
        return new InferenceException(code, "model repository '" + location + "': " + problem + ": " + reason(cause));
    }

    /** Returns a text for clients, who do not see paths of local copies. */
    private static String reason(Exception cause) {
        if (cause instanceof FileSystemException file) {
            String reason = file.getReason();
            return "local copy: " + (reason == null ? file.getClass().getSimpleName() : reason);
        }
        return String.valueOf(cause.getMessage());
    }
}
