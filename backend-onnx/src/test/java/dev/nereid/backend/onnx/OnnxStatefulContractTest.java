package dev.nereid.backend.onnx;

import dev.nereid.backend.onnx.ort.TestModels;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.SequenceBatching;
import dev.nereid.spi.Shape;
import dev.nereid.spi.StateSpec;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.contract.BackendContract;
import dev.nereid.testkit.contract.ContractExample;
import dev.nereid.testkit.contract.ContractModel;
import java.nio.file.Path;
import java.time.Duration;

/** The contract of a model whose sums are a state of sequences. */
final class OnnxStatefulContractTest extends BackendContract {
    private static final Shape FOUR = Shape.of(4);

    @Override
    protected BackendProvider provider() {
        return new OnnxBackendProvider();
    }

    @Override
    protected ContractModel model() {
        Path directory = TestModels.model("add_sub.onnx").getParent();
        return ContractModel.of(ModelSettings.builder("sums", 1)
                        .modelFilename("batched_add_sub.onnx")
                        .json("{\"sequence_batching\":{\"state\":[{\"input_name\":\"b\"}]}}")
                        .maxBatchSize(8)
                        .input(TensorSpec.of("a", DataType.FP32, FOUR))
                        .output(TensorSpec.of("difference", DataType.FP32, FOUR))
                        .sequenceBatching(SequenceBatching.of(SequenceBatching.Strategy.OLDEST, Duration.ofSeconds(1))
                                .with(StateSpec.of("b", "sum", DataType.FP32, FOUR)))
                        .build())
                .in(directory, directory)
                .withCache(Path.of("target", "native"))
                .with(step(5, 5, 5))
                .withSequence(1, step(1, 1, 1), step(2, 1, 3), step(4, 1, 7))
                .withSequence(2, step(10, 10, 10), step(30, 20, 40));
    }

    private static ContractExample step(float number, float difference, float sum) {
        Shape shape = Shape.of(1, 4);
        return ContractExample.request()
                .input("a", shape, number, number, number, number)
                .output("difference", shape, difference, difference, difference, difference)
                .state("sum", ContractExample.floats(shape, sum, sum, sum, sum));
    }
}
