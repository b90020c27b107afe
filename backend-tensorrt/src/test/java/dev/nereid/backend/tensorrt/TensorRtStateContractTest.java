package dev.nereid.backend.tensorrt;

import static dev.nereid.backend.tensorrt.EngineTensors.input;
import static dev.nereid.backend.tensorrt.EngineTensors.output;
import static dev.nereid.backend.tensorrt.EngineTensors.range;
import static org.assertj.core.api.Assertions.assertThat;

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
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.io.TempDir;

/** A model that adds its input to its state. */
final class TensorRtStateContractTest extends BackendContract {
    private final HostDriver driver = new HostDriver();

    @TempDir
    private Path directory;

    @Override
    protected BackendProvider provider() {
        return new FakeTensorRt(
                driver,
                List.of(
                        input("IN", Shape.of(-1, 1), range(Shape.of(1, 1), Shape.of(4, 1), Shape.of(8, 1))),
                        input("S_IN", Shape.of(-1, 1), range(Shape.of(1, 1), Shape.of(4, 1), Shape.of(8, 1))),
                        output("OUT", Shape.of(-1, 1)),
                        output("S_OUT", Shape.of(-1, 1))));
    }

    @Override
    protected ContractModel model() {
        return FakeTensorRt.model(
                        directory,
                        ModelSettings.builder("sum", 1)
                                .maxBatchSize(8)
                                .sequenceBatching(
                                        SequenceBatching.of(SequenceBatching.Strategy.DIRECT, Duration.ofSeconds(5))
                                                .with(StateSpec.of("S_IN", "S_OUT", DataType.FP32, Shape.of(1))))
                                .input(TensorSpec.of("IN", DataType.FP32, Shape.of(1)))
                                .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(1)))
                                .build())
                .with(add(5, 5))
                .withSequence(1, add(1, 1), add(2, 3), add(3, 6))
                .withSequence(2, add(10, 10), add(20, 30));
    }

    private static ContractExample add(float number, float sum) {
        return ContractExample.request().input("IN", Shape.of(1, 1), number).output("OUT", Shape.of(1, 1), sum);
    }

    @AfterEach
    void leavesNothing() {
        assertThat(driver.living()).isZero();
    }
}
