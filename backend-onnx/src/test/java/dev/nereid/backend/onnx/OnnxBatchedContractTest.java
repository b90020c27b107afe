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

/** The contract of a model with batches and two outputs. */
final class OnnxBatchedContractTest extends BackendContract {
    @Override
    protected BackendProvider provider() {
        return new OnnxBackendProvider();
    }

    @Override
    protected ContractModel model() {
        Path directory = TestModels.model("add_sub.onnx").getParent();
        return ContractModel.of(ModelSettings.builder("batched", 1)
                        .modelFilename("batched_add_sub.onnx")
                        .maxBatchSize(8)
                        .input(TensorSpec.of("a", DataType.FP32, Shape.of(4)))
                        .input(TensorSpec.of("b", DataType.FP32, Shape.of(4)))
                        .output(TensorSpec.of("sum", DataType.FP32, Shape.of(4)))
                        .output(TensorSpec.of("difference", DataType.FP32, Shape.of(4)))
                        .build())
                .in(directory, directory)
                .withCache(Path.of("target", "native"))
                .with(example(1))
                .with(example(100))
                .with(ContractExample.request()
                        .input("a", Shape.of(2, 4), 1f, 2f, 3f, 4f, 5f, 6f, 7f, 8f)
                        .input("b", Shape.of(2, 4), 1f, 1f, 1f, 1f, 2f, 2f, 2f, 2f)
                        .output("sum", Shape.of(2, 4), 2f, 3f, 4f, 5f, 7f, 8f, 9f, 10f)
                        .output("difference", Shape.of(2, 4), 0f, 1f, 2f, 3f, 3f, 4f, 5f, 6f));
    }

    private static ContractExample example(float last) {
        Shape shape = Shape.of(1, 4);
        return ContractExample.request()
                .input("a", shape, 10f, 20f, 30f, 40f)
                .input("b", shape, 1f, 2f, 3f, last)
                .output("sum", shape, 11f, 22f, 33f, 40f + last)
                .output("difference", shape, 9f, 18f, 27f, 40f - last);
    }
}
