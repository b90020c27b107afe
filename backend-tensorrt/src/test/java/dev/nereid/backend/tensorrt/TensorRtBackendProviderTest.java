package dev.nereid.backend.tensorrt;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.BackendProvider;
import java.util.ServiceLoader;
import org.junit.jupiter.api.Test;

final class TensorRtBackendProviderTest {
    @Test
    void isFoundAsAServiceAndSaysInOneLineWhyItCannotWork() {
        BackendProvider provider =
                ServiceLoader.load(BackendProvider.class).findFirst().orElseThrow();

        assertThat(provider).isInstanceOf(TensorRtBackendProvider.class);
        assertThat(provider.name()).isEqualTo("tensorrt");
        assertThat(provider.platforms()).containsExactlyInAnyOrder("tensorrt_plan");
        assertThat(provider.unavailable())
                .hasValueSatisfying(reason -> assertThat(reason)
                        .startsWith("not available: ")
                        .contains("TensorRT")
                        .doesNotContain("\n"));
    }
}
