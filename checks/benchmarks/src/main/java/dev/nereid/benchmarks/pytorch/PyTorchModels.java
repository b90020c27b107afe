package dev.nereid.benchmarks.pytorch;

import dev.nereid.benchmarks.process.ModelRepositories;
import dev.nereid.benchmarks.run.BenchmarkRun;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/** Models that PyTorch compiles, in a separate process. Static functions only. */
final class PyTorchModels {
    static final String RESNET = "resnet18";
    static final String BATCHED_RESNET = "resnet18_batched";
    static final String LINEAR = "linear";

    private static final String MAKER = "dev.nereid.backend.pytorch.MakeNetworks";
    private static final String CACHE = "natives";

    private PyTorchModels() {}

    /** Writes a repository of models, and returns its path. */
    static Path make(BenchmarkRun bench) throws IOException, InterruptedException {
        Path module = bench.checkout().resolve("backend-pytorch").toAbsolutePath();
        Path target = module.resolve("target");
        List<String> classPath = new ArrayList<>(List.of(
                target.resolve("test-classes").toString(),
                target.resolve("classes").toString()));
        try (Stream<Path> files = Files.list(target.resolve("plugin"))) {
            files.map(Path::toString).filter(name -> name.endsWith(".jar")).forEach(classPath::add);
        }
        try (Stream<Path> files = Files.list(bench.installed().resolve("lib"))) {
            files.map(Path::toString).filter(name -> name.endsWith(".jar")).forEach(classPath::add);
        }
        Path repository = Files.createDirectories(bench.workspace().path("models-pytorch"));
        Process process = new ProcessBuilder(
                        ProcessHandle.current().info().command().orElse("java"),
                        "--enable-native-access=ALL-UNNAMED",
                        "-cp",
                        String.join(File.pathSeparator, classPath),
                        MAKER,
                        target.resolve("plugin").toString(),
                        target.resolve(CACHE).toString(),
                        repository.toString())
                .redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.INHERIT)
                .start();
        if (process.waitFor() != 0) {
            throw new IOException(MAKER + ": exit status " + process.exitValue() + " (expected: 0)");
        }
        Path batched =
                Files.createDirectories(repository.resolve(BATCHED_RESNET).resolve("1"));
        Files.createSymbolicLink(
                batched.resolve("model.pt"), repository.resolve(RESNET).resolve("1/model.pt"));
        ModelRepositories.write(repository, RESNET, config("3, 224, 224", "1000", ""));
        ModelRepositories.write(
                repository,
                BATCHED_RESNET,
                config(
                        "3, 224, 224",
                        "1000",
                        "dynamic_batching { preferred_batch_size: [ 8 ] max_queue_delay_microseconds: 2000 }"));
        ModelRepositories.write(repository, LINEAR, config("64", "10", ""));
        return repository;
    }

    private static String config(String input, String output, String batching) {
        return """
                backend: "pytorch"
                max_batch_size: 8
                input { name: "x" data_type: TYPE_FP32 dims: [ %s ] }
                output { name: "OUTPUT__0" data_type: TYPE_FP32 dims: [ %s ] }
                instance_group { count: 1 kind: KIND_CPU }
                %s
                """.formatted(input, output, batching);
    }
}
