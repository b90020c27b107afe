package dev.nereid.backend.pytorch;

import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.ControlInput;
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
import org.junit.jupiter.api.io.TempDir;

/** A model that adds its input to its state. */
final class PyTorchStateContractTest extends BackendContract {
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
                        TestModels.script("def forward(self, x: Tensor, s: Tensor, start: Tensor):\n"
                                + "    r = x + s * (1 - start)\n    return r, r"),
                        ModelSettings.builder("m", 1)
                                .maxBatchSize(8)
                                .sequenceBatching(
                                        SequenceBatching.of(SequenceBatching.Strategy.DIRECT, Duration.ofSeconds(5))
                                                .with(new ControlInput(
                                                        ControlInput.Kind.SEQUENCE_START, "START__2", DataType.FP32))
                                                .with(StateSpec.of("S__1", "T__1", DataType.FP32, Shape.of(1))))
                                .input(TensorSpec.of("IN__0", DataType.FP32, Shape.of(1)))
                                .output(TensorSpec.of("OUT__0", DataType.FP32, Shape.of(1)))
                                .build())
                .with(add(5, 5))
                .withSequence(1, add(1, 1), add(2, 3), add(3, 6))
                .withSequence(2, add(10, 10), add(20, 30));
    }

    private static ContractExample add(float number, float sum) {
        return ContractExample.request().input("IN__0", Shape.of(1, 1), number).output("OUT__0", Shape.of(1, 1), sum);
    }
}
