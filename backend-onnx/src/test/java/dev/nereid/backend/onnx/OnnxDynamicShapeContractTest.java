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

/** The contract of a model whose input and output have any length. */
final class OnnxDynamicShapeContractTest extends BackendContract {
    @Override
    protected BackendProvider provider() {
        return new OnnxBackendProvider();
    }

    @Override
    protected ContractModel model() {
        Path directory = TestModels.model("add_sub.onnx").getParent();
        return ContractModel.of(ModelSettings.builder("identity", 1)
                        .modelFilename("identity_float.onnx")
                        .maxBatchSize(8)
                        .input(TensorSpec.of("input", DataType.FP32, Shape.of(Shape.VARIABLE)))
                        .output(TensorSpec.of("output", DataType.FP32, Shape.of(Shape.VARIABLE)))
                        .build())
                .in(directory, directory)
                .withCache(Path.of("target", "native"))
                .with(example(1, 2, 3))
                .with(example(4, 5, 6))
                .with(example(7))
                .with(example());
    }

    private static ContractExample example(float... numbers) {
        Shape shape = Shape.of(1, numbers.length);
        return ContractExample.request().input("input", shape, numbers).output("output", shape, numbers);
    }
}
