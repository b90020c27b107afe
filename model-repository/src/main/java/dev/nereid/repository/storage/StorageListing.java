package dev.nereid.repository.storage;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.storage.ModelStorage;
import dev.nereid.spi.storage.StoragePage;
import dev.nereid.spi.storage.StoredObject;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.NavigableMap;
import java.util.Optional;
import java.util.SequencedSet;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Lists the models of a storage, and the objects of one model, within limits. Immutable; safe for use by any thread.
 * Numbers and sizes are limited while the pages arrive, before anything is downloaded.
 */
final class StorageListing {
    /** Receives the objects of a listing. */
    private interface Receiver {
        void accept(StoredObject object);
    }

    private static final Logger LOG = LoggerFactory.getLogger(StorageListing.class);
    private static final int MAX_ETAG_LENGTH = 1024;
    private static final int MAX_CONTINUATION_LENGTH = 16_384;

    /** The minimum bound on the number of pages, for listings with empty pages. */
    private static final int MIN_PAGES = 1_000;

    private final ModelStorage storage;
    private final StorageLimits limits;
    private final String location;

    StorageListing(ModelStorage storage, StorageLimits limits, String location) {
        this.storage = storage;
        this.limits = limits;
        this.location = location;
    }

    /**
     * Lists the models with their fingerprints. Directories that cannot be models are ignored, with one warning for
     * each listing.
     */
    NavigableMap<String, String> models() {
        TreeMap<String, Fingerprint> models = new TreeMap<>();
        Set<String> ignored = new TreeSet<>();
        list("", limits.objects(), object -> {
            Optional<String> model = ObjectKeys.model(object.key());
            if (model.isEmpty()) {
                return; // a file beside the models, as in a local repository
            }
            String name = model.get();
            if (name.startsWith(".") || ObjectKeys.nameViolation(name).isPresent()) {
                if (ignored.size() < 3) {
                    ignored.add(ObjectKeys.printable(name));
                }
            } else {
                models.computeIfAbsent(name, _ -> new Fingerprint()).add(object);
            }
        });
        if (!ignored.isEmpty()) {
            LOG.atWarn()
                    .addKeyValue("repository", location)
                    .log(
                            "hidden or invalid directories in model repository ignored, such as {} (repository '{}')",
                            ignored,
                            location);
        }
        TreeMap<String, String> fingerprints = new TreeMap<>();
        models.forEach((name, fingerprint) -> fingerprints.put(name, fingerprint.text()));
        return fingerprints;
    }

    /** Computes the fingerprint of a model of a checked name, not of checked keys; empty if there is no such model. */
    Optional<String> fingerprint(String model) {
        Fingerprint fingerprint = new Fingerprint();
        int[] objects = {0};
        list(model + "/", limits.objects(), object -> {
            fingerprint.add(object);
            objects[0]++;
        });
        return objects[0] == 0 ? Optional.empty() : Optional.of(fingerprint.text());
    }

    /**
     * Lists the objects of a model and checks their keys, number and sizes.
     *
     * @param model a name that was checked
     * @throws BackendException {@link ErrorCode#NOT_FOUND} if there is no such model
     */
    ModelListing model(String model) {
        Fingerprint fingerprint = new Fingerprint();
        List<StoredObject> files = new ArrayList<>();
        TreeSet<String> directories = new TreeSet<>();
        long[] bytes = {0};
        list(model + "/", limits.filesPerModel(), object -> {
            checkKey(object);
            fingerprint.add(object);
            String path = object.key();
            if (ObjectKeys.isDirectory(path)) {
                path = path.substring(0, path.length() - 1);
                directories.add(path);
            } else {
                files.add(object);
            }
            for (int slash = path.lastIndexOf('/'); slash > 0; slash = path.lastIndexOf('/', slash - 1)) {
                directories.add(path.substring(0, slash));
            }
            bytes[0] = addSize(bytes[0], object);
            checkCount(directories.size() + files.size());
        });
        if (directories.isEmpty()) {
            throw new BackendException(ErrorCode.NOT_FOUND, "no objects below '" + model + "/'");
        }
        checkNames(files, directories);
        files.sort(Comparator.comparing(StoredObject::key));
        return new ModelListing(
                model, files, Collections.unmodifiableNavigableSet(directories), bytes[0], fingerprint.text());
    }

    private long addSize(long bytes, StoredObject object) {
        if (object.size() > limits.bytesPerModel() - bytes) {
            throw invalid("the model is larger than " + limits.bytesPerModel() + " bytes (limit)");
        }
        return bytes + object.size();
    }

    private void checkCount(int count) {
        if (count > limits.filesPerModel()) {
            throw invalid("the model has more than " + limits.filesPerModel() + " files and directories (limit)");
        }
    }

    private static void checkKey(StoredObject object) {
        Optional<String> violation = ObjectKeys.violation(object.key());
        if (violation.isPresent()) {
            throw invalid("object '" + ObjectKeys.printable(object.key()) + "' has " + violation.get()
                    + " (expected: names of files, separated by single slashes)");
        }
        if (ObjectKeys.isDirectory(object.key()) && object.size() > 0) {
            throw invalid("object '" + ObjectKeys.printable(object.key())
                    + "' has content and ends with a slash (expected: a file, or an empty object for a directory)");
        }
    }

    private static void checkNames(List<StoredObject> files, Set<String> directories) {
        Set<String> names = new HashSet<>(directories);
        for (StoredObject file : files) {
            if (!names.add(file.key())) {
                throw invalid("object '" + file.key() + "' is listed twice, or is a directory too (expected: one of"
                        + " them)");
            }
        }
    }

    private void list(String prefix, int limit, Receiver receiver) {
        String continuation = "";
        int objects = 0;
        int maxPages = Math.max(MIN_PAGES, limit);
        for (int pages = 0; pages < maxPages; pages++) {
            StoragePage page = storage.list(prefix, continuation);
            for (StoredObject object : page.objects()) {
                if (++objects > limit) {
                    throw invalid("more than " + limit + " objects below '" + prefix + "' (limit)");
                }
                check(object, prefix);
                receiver.accept(object);
            }
            continuation = page.continuation();
            if (continuation.isEmpty()) {
                return;
            }
            if (continuation.length() > MAX_CONTINUATION_LENGTH) {
                throw invalid("the storage continues a listing by a text of " + continuation.length()
                        + " characters (expected: at most " + MAX_CONTINUATION_LENGTH + ")");
            }
        }
        throw invalid("the storage does not end the listing of '" + prefix + "' after " + maxPages + " pages");
    }

    private static void check(StoredObject object, String prefix) {
        if (!object.key().startsWith(prefix)) {
            throw invalid("the storage lists '" + ObjectKeys.printable(object.key()) + "' below '" + prefix
                    + "' (expected: keys that begin with it)");
        }
        String etag = object.etag();
        if (etag.length() > MAX_ETAG_LENGTH || etag.chars().anyMatch(Character::isISOControl)) {
            throw invalid("object '" + ObjectKeys.printable(object.key()) + "' has an ETag of " + etag.length()
                    + " characters (expected: at most " + MAX_ETAG_LENGTH + ", and no control characters)");
        }
    }

    private static BackendException invalid(String message) {
        return new BackendException(ErrorCode.INVALID_ARGUMENT, message);
    }

    /**
     * The objects of one model, with checked keys. Immutable.
     *
     * @param model the name of the model, with which all keys begin
     * @param directories the keys of all directories without a slash at their ends, each after the one that contains it
     * @param fingerprint identifies names and contents
     */
    record ModelListing(
            String model, List<StoredObject> files, SequencedSet<String> directories, long bytes, String fingerprint) {
        ModelListing {
            files = List.copyOf(files);
            directories = new TreeSet<>(directories);
        }
    }
}
