package dev.nereid.backend.tensorrt;

import static dev.nereid.backend.tensorrt.EngineTensors.input;
import static dev.nereid.backend.tensorrt.EngineTensors.output;
import static dev.nereid.backend.tensorrt.EngineTensors.range;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.contract.BackendContract;
import dev.nereid.testkit.contract.ContractExample;
import dev.nereid.testkit.contract.ContractModel;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.io.TempDir;

final class TensorRtContractTest extends BackendContract {
    private final HostDriver driver = new HostDriver();

    @TempDir
    private Path directory;

    @Override
    protected BackendProvider provider() {
        return new FakeTensorRt(
                driver,
                List.of(
                        input("IN", Shape.of(-1, 2), range(Shape.of(1, 2), Shape.of(4, 2), Shape.of(8, 2))),
                        output("OUT", Shape.of(-1, 2))));
    }

    @Override
    protected ContractModel model() {
        return FakeTensorRt.model(
                        directory,
                        ModelSettings.builder("engine", 1)
                                .maxBatchSize(8)
                                .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
                                .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
                                .build())
                .with(ContractExample.request()
                        .input("IN", Shape.of(1, 2), 1f, 2f)
                        .output("OUT", Shape.of(1, 2), 1f, 2f))
                .with(ContractExample.request()
                        .input("IN", Shape.of(1, 2), 3f, 4f)
                        .output("OUT", Shape.of(1, 2), 3f, 4f));
    }

    @AfterEach
    void leavesNothing() {
        assertThat(driver.living()).isZero();
    }
}
