package dev.nereid.backend.onnx;

import dev.nereid.backend.onnx.ort.TestGpu;
import dev.nereid.backend.onnx.ort.TestModels;
import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.contract.BackendContract;
import dev.nereid.testkit.contract.ContractExample;
import dev.nereid.testkit.contract.ContractModel;
import java.nio.file.Path;

/** The GPU build of ONNX Runtime, which may replace the build for the CPU there too. */
final class OnnxGpuBuildContractTest extends BackendContract {
    private static final Shape FOUR = Shape.of(4);

    @Override
    protected BackendProvider provider() {
        ClassLoader artifact = TestGpu.artifact();
        return new BackendProvider() {
            @Override
            public String name() {
                return "onnxruntime";
            }

            @Override
            public Backend create(BackendContext context) {
                return OnnxBackend.open(context, artifact);
            }
        };
    }

    @Override
    protected ContractModel model() {
        Path directory = TestModels.model("add_sub.onnx").getParent();
        return ContractModel.of(ModelSettings.builder("add_sub", 1)
                        .modelFilename("add_sub.onnx")
                        .input(TensorSpec.of("a", DataType.FP32, FOUR))
                        .input(TensorSpec.of("b", DataType.FP32, FOUR))
                        .output(TensorSpec.of("sum", DataType.FP32, FOUR))
                        .build())
                .in(directory, directory)
                .withCache(Path.of("target", "native"))
                .with(ContractExample.request()
                        .input("a", FOUR, 10f, 20f, 30f, 40f)
                        .input("b", FOUR, 1f, 2f, 3f, 4f)
                        .output("sum", FOUR, 11f, 22f, 33f, 44f));
    }
}
