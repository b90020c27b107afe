package dev.nereid.backend.pytorch;

import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.contract.BackendContract;
import dev.nereid.testkit.contract.ContractExample;
import dev.nereid.testkit.contract.ContractModel;
import java.nio.file.Path;
import org.junit.jupiter.api.io.TempDir;

/** A model that batches, and fails where a number is negative. */
final class PyTorchBatchContractTest extends BackendContract {
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
                        TestModels.script(
                                        "def forward(self, a: Tensor):\n    assert bool(a.min() > -100), \"too small\"\n"
                                                + "    return a * 2 + self.w, a")
                                .parameter("w", new long[] {2}, 10, 20),
                        ModelSettings.builder("m", 1)
                                .maxBatchSize(8)
                                .input(TensorSpec.of("a", DataType.FP32, Shape.of(2)))
                                .output(TensorSpec.of("TWICE__0", DataType.FP32, Shape.of(2)))
                                .output(TensorSpec.of("SAME__1", DataType.FP32, Shape.of(2)))
                                .build())
                .with(example(1, 2))
                .with(example(3, 4))
                .with(example(-5, 6));
    }

    private static ContractExample example(float x, float y) {
        return ContractExample.request()
                .input("a", Shape.of(1, 2), x, y)
                .output("TWICE__0", Shape.of(1, 2), 10 + 2 * x, 20 + 2 * y)
                .output("SAME__1", Shape.of(1, 2), x, y);
    }
}
