package dev.nereid.benchmarks;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.stream.Stream;

/** A folder for everything that a run writes, removed at its end. Owned by whoever made it. */
final class Workspace implements AutoCloseable {
    private final Path folder;

    private Workspace(Path folder) {
        this.folder = folder;
    }

    static Workspace create() throws IOException {
        return new Workspace(Files.createTempDirectory("nereid-benchmarks"));
    }

    /** Returns the path of a file or folder of the given name, which may not be there yet. */
    Path path(String name) {
        return folder.resolve(name);
    }

    /** Writes a file, over one of the same name, and returns its path. */
    Path write(String name, byte[] content) throws IOException {
        return Files.write(path(name), content);
    }

    /** Copies a file that lies beside a class, and returns the path of the copy. */
    Path copyOf(Class<?> beside, String resource) throws IOException {
        try (InputStream content = beside.getResourceAsStream(resource)) {
            if (content == null) {
                throw new FileNotFoundException(resource);
            }
            return write(resource, content.readAllBytes());
        }
    }

    @Override
    public void close() {
        if (!Files.exists(folder)) {
            return;
        }
        try (Stream<Path> content = Files.walk(folder)) {
            // What lies deepest goes first; links go, what they point at stays.
            for (Path path : content.sorted(Comparator.reverseOrder()).toList()) {
                Files.deleteIfExists(path);
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
