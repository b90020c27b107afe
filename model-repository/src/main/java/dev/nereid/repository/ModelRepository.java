package dev.nereid.repository;

import dev.nereid.api.InferenceException;
import dev.nereid.spi.ErrorCode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The repositories of a server: each subdirectory is a model. Safe for use by any thread; reads the disk and the remote
 * storages at each call, on control threads.
 *
 * <p>A remote repository that cannot be reached delays a call for a limited time, and does not fail it: see {@link
 * RemoteScan}.
 */
public final class ModelRepository {
    private static final Logger LOG = LoggerFactory.getLogger(ModelRepository.class);

    /** The maximum number of hidden directories and files that are reported. */
    private static final int MAX_REPORTED = 1000;

    private final List<Path> roots;
    private final List<RemoteScan> remote;
    private final boolean hasNamespaces;
    private final Set<Path> reported = ConcurrentHashMap.newKeySet();

    /** The model directories of each local root when it was last listed. */
    private final ConcurrentHashMap<Path, List<Path>> lastListed = new ConcurrentHashMap<>();

    /**
     * Creates a repository that is partly remote.
     *
     * @param roots its directories
     * @param remote its remote parts
     * @param hasNamespaces whether each part is a namespace, so that models of two parts may have the same name
     */
    public ModelRepository(List<Path> roots, List<RepositoryRoot> remote, boolean hasNamespaces) {
        this(roots, remote, hasNamespaces, RemoteScan.Patience.DEFAULT);
    }

    ModelRepository(
            List<Path> roots, List<RepositoryRoot> remote, boolean hasNamespaces, RemoteScan.Patience patience) {
        this.roots = List.copyOf(roots);
        this.remote =
                remote.stream().map(root -> new RemoteScan(root, patience)).toList();
        this.hasNamespaces = hasNamespaces;
    }

    /** Returns whether models of two parts may have the same name. */
    public boolean hasNamespaces() {
        return hasNamespaces;
    }

    public boolean isRemote() {
        return !remote.isEmpty();
    }

    /**
     * Finds a model, without a scan of the repository.
     *
     * @param key the {@linkplain ModelKey key} of the model, or a {@linkplain ModelName#check checked} name for all
     *     models of this name
     * @return its locations, one for each part that has it; empty if there is none
     * @throws InferenceException if it is in no part that can be read, and another one cannot be read
     */
    public List<ModelLocation> find(String key) {
        String name = ModelKey.name(key);
        if (name.startsWith(".")) {
            return List.of(); // hidden
        }
        List<ModelLocation> found = new ArrayList<>();
        for (Path root : roots) {
            ModelDirectory directory = new ModelDirectory(root, name).as(key(root.toString(), name));
            if (isMeant(key, root.toString()) && Files.isDirectory(directory.path())) {
                found.add(new ModelLocation.Local(directory));
            }
        }
        List<InferenceException> failures = new ArrayList<>();
        for (Path root : found.isEmpty() ? roots : List.<Path>of()) {
            if (isMeant(key, root.toString()) && !Files.isDirectory(root)) {
                failures.add(new InferenceException(ErrorCode.UNAVAILABLE, cannotList(root, "no such directory")));
            }
        }
        for (RemoteScan scan : remote) {
            String location = scan.root().location();
            if (isMeant(key, location)) {
                try {
                    scan.find(name)
                            .ifPresent(fingerprint -> found.add(
                                    new ModelLocation.Remote(scan.root(), name, fingerprint, key(location, name))));
                } catch (InferenceException e) {
                    failures.add(e);
                }
            }
        }
        if (found.isEmpty() && !failures.isEmpty()) {
            throw failures.getFirst();
        }
        return found;
    }

    private static boolean isMeant(String key, String location) {
        String namespace = ModelKey.namespace(key);
        return namespace.isEmpty() || namespace.equals(location);
    }

    private String key(String location, String name) {
        return hasNamespaces ? ModelKey.of(location, name) : name;
    }

    /**
     * Lists the models. Files and hidden directories are ignored, the latter with a warning. Copies no remote model.
     *
     * @return the models; a part that cannot be listed has the models of its last listing
     */
    public Scan scan() {
        remote.forEach(RemoteScan::listInTime);
        return known();
    }

    /** Lists the models as {@link #scan}, but waits for remote repositories however long they take. */
    public Scan scanAll() {
        remote.forEach(RemoteScan::list);
        return known();
    }

    /**
     * Lists the models in directories.
     *
     * @throws InferenceException if a directory cannot be read
     */
    public Scan scanLocal() {
        Listing listing = new Listing();
        for (Path root : roots) {
            addLocal(root, directories(root), listing);
        }
        return listing.end(Map.of());
    }

    private Scan known() {
        Listing listing = new Listing();
        Map<String, String> unreachable = new HashMap<>();
        roots.forEach(root -> addKnown(root, listing, unreachable));
        for (RemoteScan scan : remote) {
            RepositoryRoot root = scan.root();
            scan.models()
                    .forEach((name, fingerprint) ->
                            listing.add(new ModelLocation.Remote(root, name, fingerprint, key(root.location(), name))));
            scan.failure().ifPresent(failure -> unreachable.put(root.location(), failure.publicMessage()));
        }
        return listing.end(unreachable);
    }

    /** Adds the models of a directory, or the models of its last listing if it cannot be listed now. */
    private void addKnown(Path root, Listing listing, Map<String, String> unreachable) {
        List<Path> directories;
        try {
            directories = directories(root);
        } catch (InferenceException e) {
            unreachable.put(root.toString(), e.publicMessage());
            directories = lastListed.getOrDefault(root, List.of());
        }
        addLocal(root, directories, listing);
    }

    private void addLocal(Path root, List<Path> directories, Listing listing) {
        for (Path directory : directories) {
            String name = directory.getFileName().toString();
            if (name.startsWith(".")) {
                reportHidden(directory);
            } else {
                listing.add(new ModelLocation.Local(new ModelDirectory(root, name).as(key(root.toString(), name))));
            }
        }
    }

    /** The models found so far. Confined to a scan. */
    private static final class Listing {
        private final TreeMap<String, ModelLocation> models = new TreeMap<>();
        private final Set<String> duplicates = new HashSet<>();

        void add(ModelLocation model) {
            if (models.putIfAbsent(model.key(), model) != null) {
                duplicates.add(model.key());
            }
        }

        Scan end(Map<String, String> unreachable) {
            models.keySet().removeAll(duplicates);
            return new Scan(new ArrayList<>(models.values()), duplicates, unreachable);
        }
    }

    /**
     * Deletes the local copies of all remote models but some, once they are not in use any more. The copies of a
     * repository that cannot be reached stay.
     *
     * @param models the keys of models that exist, or may come back soon
     */
    public void retain(Set<String> models) {
        for (RemoteScan scan : remote) {
            String location = scan.root().location();
            if (scan.isKnown()) {
                scan.root()
                        .retain(models.stream()
                                .filter(key -> isMeant(key, location))
                                .map(ModelKey::name)
                                .toList());
            }
        }
    }

    /** Warns of a hidden directory, once. The links and directories of a mounted Kubernetes volume are no mistake. */
    private void reportHidden(Path directory) {
        boolean isOfVolume = ModelDirectory.isOfVolume(String.valueOf(directory.getFileName()));
        if (!isOfVolume && reported.size() < MAX_REPORTED && reported.add(directory)) {
            LOG.atWarn()
                    .addKeyValue("directory", directory)
                    .log("hidden directory in model repository ignored ({})", directory);
        }
    }

    /** Warns of a model's file that lies beside the directories of models, once. */
    private void reportLoose(Path file) {
        ModelLayout.loose(file)
                .filter(_ -> reported.size() < MAX_REPORTED && reported.add(file))
                .ifPresent(hint -> LOG.atWarn()
                        .addKeyValue("directory", file.getParent())
                        .log("file in model repository ignored: {} ({})", hint, file.getParent()));
    }

    private List<Path> directories(Path root) {
        try (Stream<Path> entries = Files.list(root)) {
            List<Path> all = entries.sorted().toList();
            List<Path> found = all.stream().filter(Files::isDirectory).toList();
            all.stream().filter(entry -> !found.contains(entry)).forEach(this::reportLoose);
            lastListed.put(root, found);
            return found;
        } catch (IOException | UncheckedIOException e) {
            throw new InferenceException(ErrorCode.INTERNAL, cannotList(root, cause(root, e)));
        }
    }

    private static String cause(Path root, Exception failure) {
        if (!Files.exists(root)) {
            return "no such directory";
        }
        return Files.isDirectory(root) ? failure.getClass().getSimpleName() : "not a directory";
    }

    private static String cannotList(Path root, String cause) {
        return "model repository: cannot list " + (root.getFileName() == null ? root : root.getFileName()) + ": "
                + cause;
    }

    /**
     * The models in a repository at one moment. Immutable.
     *
     * @param models the models with unique keys, by key. A repository that cannot be reached has the models of its last
     *     listing
     * @param duplicates the names that appear in more than one directory; none of them can be served
     * @param unreachable the reasons why repositories cannot be listed, by their directories or URLs
     */
    public record Scan(List<ModelLocation> models, Set<String> duplicates, Map<String, String> unreachable) {
        public Scan {
            models = List.copyOf(models);
            duplicates = Set.copyOf(duplicates);
            unreachable = Map.copyOf(unreachable);
        }
    }
}
