package dev.nereid.repository.storage;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.repository.ModelCopy;
import dev.nereid.repository.ModelDirectory;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.locks.ReentrantLock;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The complete local copies of a repository's models, and their leases. Safe for use by any thread.
 *
 * <p>A copy of an earlier process is verified before its first use. A copy is deleted when it is not leased and is not
 * the newest one of its model.
 */
final class LocalCopies implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(LocalCopies.class);

    private final CopiesDirectory directory;
    private final ReentrantLock lock = new ReentrantLock();

    @GuardedBy("lock")
    private final Map<String, Copy> copies = new HashMap<>();

    /** The fingerprints of the newest copies, by model. A model with copies of an earlier process has none. */
    @GuardedBy("lock")
    private final Map<String, String> newest = new HashMap<>();

    /** A complete copy. Its fields are guarded by the lock. */
    private static final class Copy {
        final CopyManifest manifest;
        boolean verified;
        int leases;

        Copy(CopyManifest manifest, boolean verified) {
            this.manifest = manifest;
            this.verified = verified;
        }
    }

    LocalCopies(CopiesDirectory directory) throws IOException {
        this.directory = directory;
        for (CopyManifest manifest : directory.manifests()) {
            copies.put(manifest.fingerprint(), new Copy(manifest, false));
        }
    }

    CopiesDirectory directory() {
        return directory;
    }

    /** Leases the copy of a model with a fingerprint; empty if there is none, or it is damaged. */
    Optional<ModelCopy> acquire(String model, String fingerprint) throws IOException {
        Copy copy;
        boolean verified;
        lock.lock();
        try {
            copy = copies.get(fingerprint);
            if (copy == null || !copy.manifest.model().equals(model)) {
                return Optional.empty();
            }
            copy.leases++;
            verified = copy.verified;
        } finally {
            lock.unlock();
        }
        boolean usable = verified;
        try {
            usable = verified || copy.manifest.isOf(directory.copy(fingerprint));
        } finally {
            if (!usable) {
                forget(copy);
            }
        }
        if (!usable) {
            LOG.atWarn()
                    .addKeyValue("model", model)
                    .addKeyValue("directory", directory.copy(fingerprint))
                    .log(
                            "local copy of model is damaged, and is downloaded again (model '{}', {})",
                            model,
                            directory.copy(fingerprint));
            return Optional.empty();
        }
        return Optional.of(newest(copy));
    }

    /** Leases a complete copy of a model, whatever its fingerprint, to take unchanged files from; empty if none. */
    Optional<ModelCopy> acquireAny(String model) throws IOException {
        Optional<String> fingerprint;
        lock.lock();
        try {
            fingerprint = Optional.ofNullable(newest.get(model))
                    .or(() -> copies.values().stream()
                            .filter(copy -> copy.manifest.model().equals(model))
                            .map(copy -> copy.manifest.fingerprint())
                            .findAny());
        } finally {
            lock.unlock();
        }
        return fingerprint.isEmpty() ? Optional.empty() : acquire(model, fingerprint.get());
    }

    /** Makes a partial copy a complete one, and leases it. If there is one already, that one is leased. */
    ModelCopy install(Path partial, CopyManifest manifest) throws IOException {
        Copy copy;
        boolean existed;
        lock.lock();
        try {
            Copy present = copies.get(manifest.fingerprint());
            existed = present != null;
            if (present == null) {
                directory.publish(partial, manifest.fingerprint());
                present = new Copy(manifest, true);
                copies.put(manifest.fingerprint(), present);
            }
            present.leases++;
            copy = present;
        } finally {
            lock.unlock();
        }
        if (existed) {
            directory.discard(partial);
        } else {
            directory.sync();
        }
        return newest(copy);
    }

    /** Forgets the copies of all models but some. Leased copies are deleted with the end of their last lease. */
    void retain(Set<String> models) {
        List<Path> unused = new ArrayList<>();
        lock.lock();
        try {
            newest.keySet().retainAll(models);
            for (Iterator<Copy> all = copies.values().iterator(); all.hasNext(); ) {
                Copy copy = all.next();
                if (copy.leases == 0 && !models.contains(copy.manifest.model())) {
                    all.remove();
                    unpublish(copy, unused);
                }
            }
        } finally {
            lock.unlock();
        }
        unused.forEach(directory::discard);
    }

    /** Ends the use of the directory. The copies stay, for the next start. */
    @Override
    public void close() {
        directory.close();
    }

    /** Makes a leased copy the newest one of its model, and deletes the others unless they are leased. */
    private ModelCopy newest(Copy copy) {
        String model = copy.manifest.model();
        List<Path> unused = new ArrayList<>();
        lock.lock();
        try {
            copy.verified = true;
            newest.put(model, copy.manifest.fingerprint());
            for (Iterator<Copy> all = copies.values().iterator(); all.hasNext(); ) {
                Copy other = all.next();
                if (other != copy && other.leases == 0 && other.manifest.model().equals(model)) {
                    all.remove();
                    unpublish(other, unused);
                }
            }
        } finally {
            lock.unlock();
        }
        unused.forEach(directory::discard);
        return new ModelCopy(
                new ModelDirectory(directory.copy(copy.manifest.fingerprint()), model),
                copy.manifest.fingerprint(),
                copy.manifest.copiedFiles(),
                () -> release(copy));
    }

    private void release(Copy copy) {
        String fingerprint = copy.manifest.fingerprint();
        List<Path> unused = new ArrayList<>();
        lock.lock();
        try {
            copy.leases--;
            if (copy.leases == 0
                    && !fingerprint.equals(newest.get(copy.manifest.model()))
                    && copies.remove(fingerprint, copy)) {
                unpublish(copy, unused);
            }
        } finally {
            lock.unlock();
        }
        unused.forEach(directory::discard);
    }

    private void forget(Copy copy) {
        List<Path> unused = new ArrayList<>();
        lock.lock();
        try {
            copy.leases--;
            if (copies.remove(copy.manifest.fingerprint(), copy)) {
                unpublish(copy, unused);
            }
        } finally {
            lock.unlock();
        }
        unused.forEach(directory::discard);
    }

    @GuardedBy("lock")
    private void unpublish(Copy copy, List<Path> unused) {
        Path path = directory.copy(copy.manifest.fingerprint());
        try {
            unused.add(directory.unpublish(copy.manifest.fingerprint()));
        } catch (IOException e) {
            LOG.atWarn()
                    .addKeyValue("directory", path)
                    .setCause(e)
                    .log("local copy of model could not be deleted ({})", path);
        }
    }
}
