package dev.nereid.testkit.server;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;

/**
 * A model repository in a temporary directory. Confined to the test's thread until it is closed.
 *
 * @param root the directory, deleted at the close
 */
record TemporaryRepository(Path root) implements AutoCloseable {
    private static final String VERSION = "1";

    static TemporaryRepository create() {
        try {
            TemporaryRepository files = new TemporaryRepository(Files.createTempDirectory("nereid-test"));
            Files.createDirectory(files.models());
            return files;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    Path models() {
        return root.resolve("models");
    }

    /** Returns the directory that backends may write to. */
    Path cache() {
        return root.resolve("cache");
    }

    /** Adds a model with a configuration and an empty version. */
    void write(String model, String config) {
        try {
            Path directory = models().resolve(model);
            Files.createDirectories(directory.resolve(VERSION));
            Files.writeString(directory.resolve("config.pbtxt"), config);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Adds a copy of a model's directory. */
    void copy(Path directory) {
        Path target = models().resolve(directory.toAbsolutePath().normalize().getFileName());
        try (Stream<Path> files = Files.walk(directory)) {
            for (Path file : files.toList()) {
                Files.copy(file, target.resolve(directory.relativize(file).toString()));
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    void copy(String model, String path, Path content) {
        try {
            Path target = models().resolve(model).resolve(path);
            Files.createDirectories(target.getParent());
            Files.copy(content, target);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    @Override
    public void close() {
        try (Stream<Path> files = Files.walk(root)) {
            List<Path> all = files.sorted(Comparator.reverseOrder()).toList();
            for (Path file : all) {
                Files.deleteIfExists(file);
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
