package dev.nereid.backend.onnx;

import dev.nereid.backend.onnx.ort.TestModels;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.contract.BackendContract;
import dev.nereid.testkit.contract.ContractExample;
import dev.nereid.testkit.contract.ContractModel;
import java.nio.file.Path;

final class OnnxContractTest extends BackendContract {
    private static final Shape FOUR = Shape.of(4);

    @Override
    protected BackendProvider provider() {
        return new OnnxBackendProvider();
    }

    @Override
    protected ContractModel model() {
        Path directory = TestModels.model("add_sub.onnx").getParent();
        return ContractModel.of(ModelSettings.builder("add_sub", 1)
                        .modelFilename("add_sub.onnx")
                        .input(TensorSpec.of("a", DataType.FP32, FOUR))
                        .input(TensorSpec.of("b", DataType.FP32, FOUR))
                        .output(TensorSpec.of("sum", DataType.FP32, FOUR))
                        .output(TensorSpec.of("difference", DataType.FP32, FOUR))
                        .build())
                .in(directory, directory)
                .withCache(Path.of("target", "native"))
                .with(example(1))
                .with(example(100));
    }

    private static ContractExample example(float last) {
        return ContractExample.request()
                .input("a", FOUR, 10f, 20f, 30f, 40f)
                .input("b", FOUR, 1f, 2f, 3f, last)
                .output("sum", FOUR, 11f, 22f, 33f, 40f + last)
                .output("difference", FOUR, 9f, 18f, 27f, 40f - last);
    }
}
