package dev.nereid.backend.onnx;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ModelSettings;
import dev.nereid.testkit.FakeModelContext;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class OnnxParametersTest {
    @ParameterizedTest
    @CsvSource({
        "intra_op_thread_cuont, intra_op_thread_count",
        "Inter-Op-Thread-Count, inter_op_thread_count",
        "execution_mod, execution_mode",
        "enable_mem_arenas, enable_mem_arena",
        "execution_watchdog_sec, execution_watchdog_secs",
    })
    void suggestsTheNameThatIsMeant(String misspelt, String known) {
        assertThat(OnnxParameters.closest(misspelt)).contains(known);
    }

    @ParameterizedTest
    @ValueSource(strings = {"enable_mem_arena", "session.intra_op.allow_spinnin", "gpu_mem_limit", "labels", ""})
    void suggestsNothingForKnownNamesAndForOthers(String name) {
        assertThat(OnnxParameters.closest(name)).isEmpty();
    }

    @Test
    void aLoadWithAMisspeltParameterWarnsAndSucceeds() throws BackendException {
        FakeModelContext context = context(1);

        assertThat(OnnxModelOptions.of(context, new OnnxBackendOptions(2, 0, 0, false, 4)))
                .isNotNull();

        assertThat(context.logger().lines())
                .containsExactly("WARNING unknown parameter 'execution_mod'; did you mean 'execution_mode'?");
    }

    @Test
    void theCompletionOfAConfigurationWarnsOfNothing() throws BackendException {
        FakeModelContext context = context(0);

        OnnxModelOptions.of(context, new OnnxBackendOptions(2, 0, 0, false, 4));

        assertThat(context.logger().lines()).isEmpty();
    }

    private static FakeModelContext context(int instances) {
        return TestBackend.model(
                ModelSettings.builder("m", 1).parameter("execution_mod", "1").build(), instances);
    }
}
