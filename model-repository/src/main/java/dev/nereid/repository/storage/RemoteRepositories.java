package dev.nereid.repository.storage;

import dev.nereid.repository.RepositoryRoot;
import dev.nereid.spi.storage.ModelStorage;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.SortedSet;
import java.util.TreeSet;
import java.util.function.Function;

/** The remote repositories of a server. Owns them. Immutable. */
public final class RemoteRepositories implements AutoCloseable {
    private final List<RemoteRepository> repositories;

    private RemoteRepositories(List<RemoteRepository> repositories) {
        this.repositories = List.copyOf(repositories);
    }

    /**
     * Opens the repositories, all or none. Blocks while their storages do.
     *
     * @param options their URLs, the directory and the limits of their local copies
     * @param storages opens the storage of a URL, which its repository owns
     * @return the repositories, owned by the caller
     * @throws IllegalArgumentException if one of them cannot be opened
     */
    public static RemoteRepositories open(StorageOptions options, Function<String, ModelStorage> storages) {
        List<RemoteRepository> opened = new ArrayList<>();
        boolean all = false;
        try {
            for (String url : options.urls()) {
                opened.add(RemoteRepository.open(url, options, storages));
            }
            all = true;
            return new RemoteRepositories(opened);
        } finally {
            if (!all) {
                opened.forEach(RemoteRepository::close);
            }
        }
    }

    /** Returns the schemes of the repositories, which are the names of their plugins. */
    public SortedSet<String> schemes() {
        TreeSet<String> schemes = new TreeSet<>();
        for (RemoteRepository repository : repositories) {
            schemes.add(repository.location().substring(0, repository.location().indexOf("://")));
        }
        return schemes;
    }

    /** Returns the repositories in the order of their options. */
    public List<RepositoryRoot> roots() {
        return List.copyOf(repositories);
    }

    /**
     * Returns whether a path leads into the local copies of a repository, which only this server writes.
     *
     * @param path the path of a file or directory
     * @return whether it is below the directory of a repository
     */
    public boolean contains(Path path) {
        return repositories.stream()
                .anyMatch(repository -> path.toAbsolutePath().startsWith(repository.directory()));
    }

    /** Closes the storages. Called once, after the last model was closed. */
    @Override
    public void close() {
        repositories.forEach(RemoteRepository::close);
    }
}
