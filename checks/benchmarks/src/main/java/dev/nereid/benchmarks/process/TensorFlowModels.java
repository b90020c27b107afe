package dev.nereid.benchmarks.process;

import dev.nereid.benchmarks.run.BenchmarkRun;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/** Models that TensorFlow Java writes, in a separate process: its protobuf is older than the server's. */
public final class TensorFlowModels {
    private static final String MAKER = "dev.nereid.backend.tensorflow.MakeModels";

    private TensorFlowModels() {}

    /** Writes a repository of models, and returns its path. */
    public static Path make(BenchmarkRun bench) throws IOException, InterruptedException {
        Path module = bench.checkout().resolve("backend-tensorflow").toAbsolutePath();
        Path target = module.resolve("target");
        List<String> classPath =
                new ArrayList<>(List.of(target.resolve("test-classes").toString()));
        for (String libraries : List.of("plugin", "plugin/natives", "test-libraries")) {
            try (Stream<Path> files = Files.list(target.resolve(libraries))) {
                files.map(Path::toString).filter(name -> name.endsWith(".jar")).forEach(classPath::add);
            }
        }
        Path repository = Files.createDirectories(bench.workspace().path("models-tensorflow"));
        Process process = new ProcessBuilder(
                        ProcessHandle.current().info().command().orElse("java"),
                        "--enable-native-access=ALL-UNNAMED",
                        "--sun-misc-unsafe-memory-access=allow",
                        "-cp",
                        String.join(File.pathSeparator, classPath),
                        MAKER,
                        repository.toString(),
                        bench.checkout()
                                .resolve("examples/training/digits_train.csv")
                                .toAbsolutePath()
                                .toString())
                .directory(module.toFile())
                .redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                .start();
        if (process.waitFor() != 0) {
            throw new IOException(MAKER + ": exit status " + process.exitValue() + " (expected: 0)");
        }
        return repository;
    }
}
