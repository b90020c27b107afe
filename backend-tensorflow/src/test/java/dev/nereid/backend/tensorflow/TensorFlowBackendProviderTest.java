package dev.nereid.backend.tensorflow;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.ErrorCode;
import dev.nereid.testkit.FakeBackendContext;
import java.util.Map;
import java.util.ServiceLoader;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class TensorFlowBackendProviderTest {
    @Test
    void isFoundAsAServiceAndWorksOnThisMachine() {
        BackendProvider provider =
                ServiceLoader.load(BackendProvider.class).findFirst().orElseThrow();

        assertThat(provider).isInstanceOf(TensorFlowBackendProvider.class);
        assertThat(provider.name()).isEqualTo("tensorflow");
        assertThat(provider.platforms()).containsExactlyInAnyOrder("tensorflow_graphdef", "tensorflow_savedmodel");
        assertThat(provider.unavailable()).isEmpty();
    }

    @ParameterizedTest
    @CsvSource({
        "TF_NUM_INTRA_THREADS, many, failed to convert 'many' to integral number",
        "TF_NUM_INTRA_THREADS, -1, '--backend-config=backend,TF_NUM_INTRA_THREADS: -1 (expected: '",
        "allow-soft-placement, perhaps, failed to convert 'perhaps' to boolean",
        "default-max-batch-size, x, failed to convert 'x' to integral number"
    })
    void refusesSettingsThatAreNone(String name, String value, String reason) {
        TensorFlowJava.ensureLoaded();

        assertThatThrownBy(() -> new TensorFlowBackendProvider()
                        .create(new FakeBackendContext(Map.of(name, value), TensorFlowJava.CACHE, 2)))
                .isInstanceOfSatisfying(
                        BackendException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT))
                .hasMessageContaining(reason)
                .hasMessageContaining(name);
    }
}
