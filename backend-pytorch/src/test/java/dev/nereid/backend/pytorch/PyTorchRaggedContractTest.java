package dev.nereid.backend.pytorch;

import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.BatchInput;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.contract.BackendContract;
import dev.nereid.testkit.contract.ContractExample;
import dev.nereid.testkit.contract.ContractModel;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.io.TempDir;

/** A model with a ragged input and the ends of its parts. */
final class PyTorchRaggedContractTest extends BackendContract {
    @TempDir
    private static Path directory;

    @Override
    protected BackendProvider provider() {
        return new PyTorchBackendProvider();
    }

    @Override
    protected ContractModel model() {
        return ContractModels.of(
                        directory,
                        TestModels.script("def forward(self, a: Tensor, ends: Tensor):\n    s = torch.cat([a[:1] * 0,"
                                + " a.cumsum(0)])\n    e = ends.to(4)\n    b = torch.cat([e[:1] * 0, e[:-1]])\n"
                                + "    return (s[e] - s[b]).unsqueeze(1)"),
                        ModelSettings.builder("m", 1)
                                .maxBatchSize(8)
                                .input(TensorSpec.of("a", DataType.FP32, Shape.of(-1))
                                        .with(TensorSpec.Trait.RAGGED))
                                .batchInput(new BatchInput(
                                        BatchInput.Kind.ACCUMULATED_ELEMENT_COUNT,
                                        List.of("ends"),
                                        DataType.INT32,
                                        "a"))
                                .output(TensorSpec.of("SUM__0", DataType.FP32, Shape.of(1)))
                                .build())
                .with(sum(1, 2))
                .with(sum(5))
                .with(sum(1, 1, 1, 1));
    }

    private static ContractExample sum(float... numbers) {
        float sum = 0;
        for (float number : numbers) {
            sum += number;
        }
        return ContractExample.request()
                .input("a", Shape.of(1, numbers.length), numbers)
                .output("SUM__0", Shape.of(1, 1), sum);
    }
}
