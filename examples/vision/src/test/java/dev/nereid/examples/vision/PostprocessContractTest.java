package dev.nereid.examples.vision;

import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.contract.BackendContract;
import dev.nereid.testkit.contract.ContractExample;
import dev.nereid.testkit.contract.ContractModel;
import java.nio.file.Path;
import java.util.List;

final class PostprocessContractTest extends BackendContract {
    private static final Path MODEL = Path.of("..", "pipeline-models", "expression_model");

    @Override
    protected BackendProvider provider() {
        return new Postprocess();
    }

    @Override
    protected ContractModel model() {
        return ContractModel.of(ModelSettings.builder("postprocess_model", 1)
                        .maxBatchSize(8)
                        .input(TensorSpec.of("SCORES", DataType.FP32, Shape.of(4)))
                        .output(TensorSpec.of("JSON", DataType.BYTES, Shape.of(1)))
                        .build())
                .withParameter("top", "2")
                .in(MODEL, MODEL.resolve("1"))
                .with(example(
                        "{\"label\":\"sad\",\"score\":0.7500,\"top\":[{\"label\":\"sad\",\"score\":0.7500,\"output\":2},"
                                + "{\"label\":\"#3\",\"score\":0.2500,\"output\":3}]}",
                        0,
                        0,
                        0.75f,
                        0.25f))
                .with(example(
                        "{\"label\":\"smiling\",\"score\":1.0000,\"top\":[{\"label\":\"smiling\",\"score\":1.0000,"
                                + "\"output\":0},{\"label\":\"neutral\",\"score\":0.0000,\"output\":1}]}",
                        1,
                        0,
                        0,
                        0))
                .with(ContractExample.request()
                        .input("SCORES", Shape.of(1, 4), 1, Float.NaN, 0, 0)
                        .failure("SCORES: NaN at 1 (expected: finite numbers)"));
    }

    private static ContractExample example(String json, float... scores) {
        return ContractExample.request()
                .input("SCORES", Shape.of(1, 4), scores)
                .output("JSON", Tensor.ofStrings(Shape.of(1, 1), List.of(json)));
    }
}
