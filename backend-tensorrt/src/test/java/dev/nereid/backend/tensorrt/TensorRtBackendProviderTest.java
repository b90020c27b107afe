package dev.nereid.backend.tensorrt;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.nereid.cuda.GpuDiscovery;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.ErrorCode;
import dev.nereid.testkit.FakeBackendContext;
import java.nio.file.Path;
import java.util.Map;
import java.util.ServiceLoader;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class TensorRtBackendProviderTest {
    @TempDir
    private Path directory;

    @Test
    void isFoundAsAServiceAndNamesTheMissingPiece() {
        assumeTrue(GpuDiscovery.run().gpus().isEmpty(), "there is a GPU");
        BackendProvider provider =
                ServiceLoader.load(BackendProvider.class).findFirst().orElseThrow();

        assertThat(provider).isInstanceOf(TensorRtBackendProvider.class);
        assertThat(provider.name()).isEqualTo("tensorrt");
        assertThat(provider.platforms()).containsExactlyInAnyOrder("tensorrt_plan");
        assertThat(provider.unavailable())
                .hasValueSatisfying(reason -> assertThat(reason)
                        .startsWith("TensorRT unavailable: no GPU: CUDA driver: ")
                        .doesNotContain("\n"));
        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> provider.create(new FakeBackendContext(Map.of(), directory, 1)))
                .withMessageStartingWith("TensorRT unavailable: no GPU: CUDA driver: ")
                .matches(e -> e.code() == ErrorCode.UNAVAILABLE);
    }
}
