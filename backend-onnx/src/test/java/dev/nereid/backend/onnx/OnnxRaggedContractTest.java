package dev.nereid.backend.onnx;

import dev.nereid.backend.onnx.ort.TestModels;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.BatchInput;
import dev.nereid.spi.BatchOutput;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.contract.BackendContract;
import dev.nereid.testkit.contract.ContractExample;
import dev.nereid.testkit.contract.ContractModel;
import java.nio.file.Path;
import java.util.List;

/** The contract of a model with a ragged input, one that is derived from it, and an output that is cut. */
final class OnnxRaggedContractTest extends BackendContract {
    @Override
    protected BackendProvider provider() {
        return new OnnxBackendProvider();
    }

    @Override
    protected ContractModel model() {
        Path directory = TestModels.model("add_sub.onnx").getParent();
        return ContractModel.of(ModelSettings.builder("ragged", 1)
                        .modelFilename("ragged.onnx")
                        .maxBatchSize(8)
                        .input(TensorSpec.of("values", DataType.FP32, Shape.of(Shape.VARIABLE))
                                .with(TensorSpec.Trait.RAGGED))
                        .batchInput(new BatchInput(
                                BatchInput.Kind.ACCUMULATED_ELEMENT_COUNT, List.of("ends"), DataType.INT32, "values"))
                        .output(TensorSpec.of("doubled", DataType.FP32, Shape.of(Shape.VARIABLE)))
                        .batchOutput(new BatchOutput(
                                BatchOutput.Kind.SCATTER_WITH_INPUT_SHAPE, List.of("doubled"), "values"))
                        .build())
                .in(directory, directory)
                .withCache(Path.of("target", "native"))
                .with(example(1, 2, 3))
                .with(example(10))
                .with(example(20, 30));
    }

    private static ContractExample example(float... numbers) {
        float[] doubled = numbers.clone();
        for (int i = 0; i < doubled.length; i++) {
            doubled[i] *= 2;
        }
        Shape shape = Shape.of(1, numbers.length);
        return ContractExample.request().input("values", shape, numbers).output("doubled", shape, doubled);
    }
}
