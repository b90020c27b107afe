package dev.nereid.benchmarks.run;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.stream.Stream;

/** Temporary directory of a run, deleted at its end. Owned by the code that created it. */
public final class Workspace implements AutoCloseable {
    private final Path directory;

    private Workspace(Path directory) {
        this.directory = directory;
    }

    public static Workspace create() throws IOException {
        return new Workspace(Files.createTempDirectory("nereid-benchmarks"));
    }

    /** Returns the path of a file or directory of the given name. It need not exist. */
    public Path path(String name) {
        return directory.resolve(name);
    }

    /** Writes a file, over one of the same name, and returns its path. */
    public Path write(String name, byte[] content) throws IOException {
        return Files.write(path(name), content);
    }

    public Path copyOf(Class<?> beside, String resource) throws IOException {
        try (InputStream content = beside.getResourceAsStream(resource)) {
            if (content == null) {
                throw new FileNotFoundException(resource);
            }
            return write(resource, content.readAllBytes());
        }
    }

    @Override
    public void close() {
        if (!Files.exists(directory)) {
            return;
        }
        try (Stream<Path> content = Files.walk(directory)) {
            // The deepest files are deleted first; of links only the link is deleted.
            for (Path path : content.sorted(Comparator.reverseOrder()).toList()) {
                Files.deleteIfExists(path);
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
