package dev.nereid.repository.files;

import dev.nereid.repository.ModelDirectory;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Predicate;

/**
 * Private copies of files of models, for backends that map files into memory. Safe for use by any thread.
 *
 * <p>They lie in a directory that the server's user alone may access, and that is removed with the server, or by the next
 * one if the process was killed.
 */
public final class FileCopies implements AutoCloseable {
    private final PrivateDirectory directory;
    private final AtomicLong number = new AtomicLong();
    private final List<Predicate<Path>> stable = new CopyOnWriteArrayList<>();

    /** Creates the copies of a server in a directory, and removes copies that killed servers left. Blocks. */
    public FileCopies(Path parent) {
        directory = new PrivateDirectory(parent, "mapped-");
    }

    /**
     * Exempts directories with files that only the server writes, and never again while they are in use.
     *
     * @param directories selects paths of model directories
     */
    public void exempt(Predicate<Path> directories) {
        stable.add(directories);
    }

    /** Returns the copies of one version of a model, none at first, owned by the caller. */
    public VersionFiles of(ModelDirectory model) {
        return new VersionFiles(model, directory, number, isStable(model.path()));
    }

    private boolean isStable(Path path) {
        return stable.stream().anyMatch(directories -> directories.test(path));
    }

    /** Removes all copies. Mapped files stay mapped. */
    @Override
    public void close() {
        directory.close();
    }
}
