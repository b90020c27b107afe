package dev.nereid.examples.ptx;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.cuda.GpuContext;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.contract.BackendContract;
import dev.nereid.testkit.contract.ContractExample;
import dev.nereid.testkit.contract.ContractModel;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.io.TempDir;

final class PtxContractTest extends BackendContract {
    private final KernelDriver driver = new KernelDriver();

    @TempDir
    private Path directory;

    @Override
    protected BackendProvider provider() {
        return new PtxBackendProvider(Optional::empty, number -> new GpuContext(driver.driver(), number));
    }

    @Override
    protected ContractModel model() {
        try {
            Files.writeString(directory.resolve("model.ptx"), ".version 8.0");
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return ContractModel.of(ModelSettings.builder("increment", 1)
                        .maxBatchSize(8)
                        .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
                        .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
                        .build())
                .in(directory, directory)
                .onGpu(0)
                .with(ContractExample.request()
                        .input("IN", Shape.of(1, 2), 1f, 2f)
                        .output("OUT", Shape.of(1, 2), 2f, 3f))
                .with(ContractExample.request()
                        .input("IN", Shape.of(2, 2), 3f, 4f, 5f, 6f)
                        .output("OUT", Shape.of(2, 2), 4f, 5f, 6f, 7f));
    }

    @AfterEach
    void leavesNothing() {
        assertThat(driver.living()).isZero();
    }
}
