package dev.nereid.backend.tensorflow;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.BackendProvider;
import java.util.ServiceLoader;
import org.junit.jupiter.api.Test;

final class TensorFlowBackendProviderTest {
    @Test
    void isFoundAsAServiceAndSaysInOneLineWhyItCannotWork() {
        BackendProvider provider =
                ServiceLoader.load(BackendProvider.class).findFirst().orElseThrow();

        assertThat(provider).isInstanceOf(TensorFlowBackendProvider.class);
        assertThat(provider.name()).isEqualTo("tensorflow");
        assertThat(provider.platforms()).containsExactlyInAnyOrder("tensorflow_graphdef", "tensorflow_savedmodel");
        assertThat(provider.unavailable())
                .hasValueSatisfying(reason -> assertThat(reason)
                        .startsWith("not available: ")
                        .contains("TensorFlow")
                        .doesNotContain("\n"));
    }
}
