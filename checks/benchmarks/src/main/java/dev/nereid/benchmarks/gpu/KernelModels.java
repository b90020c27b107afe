package dev.nereid.benchmarks.gpu;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Writes repositories of models that are kernels. Static functions only. */
final class KernelModels {
    private KernelModels() {}

    /** Writes models that are correct. Returns their directory. */
    static Path write(Path repository, long nanos) throws IOException {
        model(repository, "increment", "increment", ClientMemory.COUNT, 0, 2);
        model(repository, "fast", "copy", ClientMemory.COUNT, 0, 2);
        model(repository, "slow", "copy", ClientMemory.COUNT, 10_000_000, 2);
        model(repository, "copy", "copy", ClientMemory.COUNT, nanos, 2);
        model(repository, "later", "increment", ClientMemory.COUNT, 1_000_000, 2);
        chain(repository);
        return repository;
    }

    /** Writes an ensemble that adds one three times, by kernels of a millisecond. */
    private static void chain(Path repository) throws IOException {
        String[] tensors = {"IN", "ONE", "TWO", "OUT"};
        StringBuilder steps = new StringBuilder();
        for (int i = 1; i < tensors.length; i++) {
            steps.append("""
                    step { model_name: "later" model_version: -1
                      input_map { key: "IN" value: "%s" } output_map { key: "OUT" value: "%s" } }
                    """.formatted(tensors[i - 1], tensors[i]));
        }
        Files.createDirectories(repository.resolve("chain").resolve("1"));
        Files.writeString(
                repository.resolve("chain").resolve("config.pbtxt"), """
                platform: "ensemble"
                max_batch_size: 0
                input { name: "IN" data_type: TYPE_FP32 dims: %1$d }
                output { name: "OUT" data_type: TYPE_FP32 dims: %1$d }
                ensemble_scheduling { %2$s }
                """.formatted(ClientMemory.COUNT, steps));
    }

    /** Writes a model with a kernel that writes where there is no memory. Returns its directory. */
    static Path writeFaulty(Path repository) throws IOException {
        model(repository, "fault", "fault", 1, 0, 1);
        return repository;
    }

    private static void model(Path repository, String name, String kernel, int count, long nanos, int instances)
            throws IOException {
        Path version = Files.createDirectories(repository.resolve(name).resolve("1"));
        Files.writeString(version.resolve("model.ptx"), Kernels.source());
        Files.writeString(
                repository.resolve(name).resolve("config.pbtxt"), """
                backend: "ptx"
                max_batch_size: 0
                input { name: "IN" data_type: TYPE_FP32 dims: %1$d }
                output { name: "OUT" data_type: TYPE_FP32 dims: %1$d }
                instance_group { kind: KIND_GPU count: %2$d }
                parameters { key: "kernel" value { string_value: "%3$s" } }
                parameters { key: "nanos" value { string_value: "%4$d" } }
                """.formatted(count, instances, kernel, nanos));
    }
}
