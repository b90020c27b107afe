package dev.nereid.distribution.testing;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;

/** A model repository of a test. Confined to the test's thread. For other modules too. */
public final class Repository {
    private final Path directory;

    public Repository(Path directory) {
        this.directory = directory;
    }

    public Path directory() {
        return directory;
    }

    /** Adds a model that has no file but its configuration, named after the directory. */
    public Repository model(String name, String config) {
        try {
            Files.createDirectories(directory.resolve(name).resolve("1"));
            Files.writeString(directory.resolve(name).resolve("config.pbtxt"), config);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return this;
    }

    /** Adds an ONNX model with a configuration. */
    public Repository onnx(String name, Path file, String config) {
        model(name, config);
        copy(file, name);
        return this;
    }

    /** Adds an ONNX model without a configuration. */
    public Repository onnx(String name, Path file) {
        try {
            Files.createDirectories(directory.resolve(name).resolve("1"));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        copy(file, name);
        return this;
    }

    /** Adds a copy of a model's directory. */
    public Repository copyOf(Path model) {
        try (Stream<Path> files = Files.walk(model)) {
            for (Path file : files.toList()) {
                Path target = directory.resolve(model.getFileName()).resolve(model.relativize(file));
                if (Files.isDirectory(file)) {
                    Files.createDirectories(target);
                } else {
                    Files.copy(file, target);
                }
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return this;
    }

    /** Writes the configuration of a model of the identity backend. */
    public static String identity(int maxBatchSize, String type, String dims, String more) {
        return "backend: \"identity\"\nmax_batch_size: " + maxBatchSize + "\n"
                + "input [ { name: \"INPUT0\" data_type: TYPE_" + type + " dims: " + dims + " } ]\n"
                + "output [ { name: \"OUTPUT0\" data_type: TYPE_" + type + " dims: " + dims + " } ]\n" + more;
    }

    private void copy(Path file, String name) {
        try {
            Files.copy(file, directory.resolve(name).resolve("1/model.onnx"));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
