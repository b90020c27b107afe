package dev.nereid.benchmarks.process;

import dev.nereid.benchmarks.run.BenchmarkRun;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;

/** Creates model repositories for a run. */
public final class ModelRepositories {
    /** The model of the example plugin: returns its input. */
    public static final String IDENTITY = "identity";

    private ModelRepositories() {}

    /** Writes a repository with an identity model, and returns its path. */
    public static Path identity(BenchmarkRun bench) throws IOException {
        Path repository = bench.workspace().path("models-" + IDENTITY);
        write(repository, IDENTITY, """
                name: "identity"
                backend: "identity"
                max_batch_size: 64
                input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
                output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
                """);
        return repository;
    }

    /** Writes a repository with a copy of a model file and the rest of its configuration; returns its path. */
    public static Path onnx(BenchmarkRun bench, String name, Path file, String config) throws IOException {
        return onnx(bench.workspace().path("models-" + name), name, file, config);
    }

    /** Adds a model with a copy of a file, and the rest of its configuration, to a repository; returns its path. */
    public static Path onnx(Path repository, String name, Path file, String config) throws IOException {
        Path version = write(repository, name, "name: \"%s\"\nbackend: \"onnxruntime\"\n%s".formatted(name, config));
        Files.copy(file, version.resolve("model.onnx")); // a server refuses links out of the repository
        return repository;
    }

    /** Finds a model among the shared ones beside the checkout. */
    public static Optional<Path> shared(BenchmarkRun bench, String name) {
        Path file = bench.checkout().resolveSibling("shared").resolve("models").resolve(name + ".onnx");
        return Optional.of(file).filter(Files::isRegularFile);
    }

    /** Finds the model of a recorded repository among the shared files beside the checkout. */
    public static Optional<Path> recorded(BenchmarkRun bench, String name) {
        Path model = bench.checkout()
                .resolveSibling("shared")
                .resolve("golden/models")
                .resolve(name)
                .resolve("1/model.onnx");
        return Optional.of(model).filter(Files::isRegularFile);
    }

    /** Writes the configuration of a model, and returns the directory of its only version. */
    public static Path write(Path repository, String name, String config) throws IOException {
        Path version = Files.createDirectories(repository.resolve(name).resolve("1"));
        Files.writeString(repository.resolve(name).resolve("config.pbtxt"), config);
        return version;
    }
}
