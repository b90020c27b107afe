package dev.nereid.backend.tensorflow;

import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.contract.BackendContract;
import dev.nereid.testkit.contract.ContractExample;
import dev.nereid.testkit.contract.ContractModel;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.io.TempDir;

final class TensorFlowContractTest extends BackendContract {
    private static final Shape FOUR = Shape.of(4);
    private static final Shape ITEM = Shape.of(1, 4);

    @TempDir
    private static Path directory;

    @BeforeAll
    static void write() {
        TestModels.variable(directory);
    }

    @Override
    protected BackendProvider provider() {
        return new TensorFlowBackendProvider();
    }

    @Override
    protected ContractModel model() {
        return ContractModel.of(ModelSettings.builder("variable", 1)
                        .maxBatchSize(8)
                        .input(TensorSpec.of("x", DataType.FP32, FOUR))
                        .output(TensorSpec.of("sum", DataType.FP32, FOUR))
                        .output(TensorSpec.of("tenfold", DataType.FP32, FOUR))
                        .build())
                .in(directory, directory)
                .withCache(TensorFlowJava.CACHE)
                .with(example(1))
                .with(example(100));
    }

    private static ContractExample example(float first) {
        return ContractExample.request()
                .input("x", ITEM, first, 2f, 3f, 4f)
                .output("sum", ITEM, 1f + first, 4f, 6f, 8f)
                .output("tenfold", ITEM, 10f + 10f * first, 40f, 60f, 80f);
    }
}
