package dev.nereid.benchmarks.gpu;

import static dev.nereid.benchmarks.gpu.CheckList.require;

import java.nio.file.Path;
import java.util.List;

/** ONNX Runtime's provider of CUDA behind the server, compared with its CPU. Confined to one thread. */
final class OnnxChecks {
    private final Path home;
    private final Path plugins;
    private final Path onnx;
    private final Path directory;

    /** Creates the checks of the plugin {@code onnxruntime-gpu} with {@code squeezenet1_1_random.onnx}. */
    OnnxChecks(Path home, Path plugins, Path onnx, Path directory) {
        this.home = home;
        this.plugins = plugins;
        this.onnx = onnx;
        this.directory = directory;
    }

    void run(CheckList list) {
        list.check("the provider of CUDA, FP32, of the CPU's", this::cuda);
    }

    private String cuda() throws Exception {
        Path models = directory.resolve("onnx-models");
        CpuComparison.writeCpuModel(models, onnx);
        CpuComparison.write(
                models,
                "cuda",
                onnx,
                "backend: \"onnxruntime\"\ninstance_group { kind: KIND_GPU }\n" + CpuComparison.TENSORS
                        // No TF32: its numbers have 10 bits after the point.
                        + "optimization { execution_accelerators { gpu_execution_accelerator { name: \"cuda\""
                        + " parameters { key: \"use_tf32\" value: \"0\" } } } }\n");
        try (GpuServer server = new GpuServer(
                home, directory, List.of("--model-repository=" + models, "--backend-directory=" + plugins))) {
            String config = server.get("/v2/models/cuda/config");
            require(config.contains("KIND_GPU"), "not on a GPU: " + config);
            return CpuComparison.run(server, "cuda", CpuComparison.FP32);
        }
    }
}
