package dev.nereid.benchmarks.gpu;

import static dev.nereid.benchmarks.gpu.CheckList.format;
import static dev.nereid.benchmarks.gpu.CheckList.require;

import dev.nereid.benchmarks.load.InferBody;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Compares models on a GPU with ONNX Runtime on the CPU, behind the same server. Static functions only. */
final class CpuComparison {
    /** The largest difference of numbers of 32 bits, of the number or of 1. */
    static final double FP32 = 1e-3;

    /** The tensors of {@code squeezenet1_1_random.onnx}, for a configuration. */
    static final String TENSORS = """
            max_batch_size: 8
            input { name: "image" data_type: TYPE_FP32 dims: [ 3, 224, 224 ] }
            output { name: "scores" data_type: TYPE_FP32 dims: [ 1000 ] }
            """;

    private static final long[] BATCHES = {1, 3, 8, 8, 8, 8, 1};

    private CpuComparison() {}

    static void writeCpuModel(Path models, Path onnx) throws IOException {
        write(models, "cpu", onnx, "backend: \"onnxruntime\"\ninstance_group { kind: KIND_CPU }\n" + TENSORS);
    }

    static void write(Path models, String name, Path onnx, String config) throws IOException {
        Path version = Files.createDirectories(models.resolve(name).resolve("1"));
        Files.copy(onnx, version.resolve("model.onnx"));
        Files.writeString(models.resolve(name).resolve("config.pbtxt"), config);
    }

    /** Compares several times and with several batch sizes: the later ones may be graphs. */
    static String run(GpuServer server, String model, double limit) throws Exception {
        double greatest = 0;
        for (long batch : BATCHES) {
            InferBody body = InferBody.of("image", batch, 3L, 224L, 224L);
            float[] expected = HttpConnections.infer(server.httpPort(), "cpu", body);
            float[] found = HttpConnections.infer(server.httpPort(), model, body);
            require(found.length == expected.length, found.length + " numbers (expected: " + expected.length + ")");
            for (int i = 0; i < found.length; i++) {
                double scale = Math.max(1, Math.abs(expected[i]));
                greatest = Math.max(greatest, Math.abs(found[i] - expected[i]) / scale);
            }
        }
        require(greatest <= limit, format("differs by %.2g (expected: at most %.0e)", greatest, limit));
        return format("differs by %.2g", greatest);
    }
}
