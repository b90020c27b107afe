package dev.nereid.repository.config;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.parameter.ModelParameters;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class MisspeltParametersTest {
    private static ModelParameters read(Map<String, String> configured) {
        ModelParameters parameters = ModelParameters.of(configured);
        parameters.text("intra_op_thread_count");
        parameters.text("TF_GRAPH_TAG");
        parameters.under("session.").asMap();
        return parameters;
    }

    @ParameterizedTest
    @CsvSource({
        "intra_op_thread_cuont, intra_op_thread_count",
        "Intra-Op-Thread-Count, intra_op_thread_count",
        "tf_graph_tags, TF_GRAPH_TAG",
        "execution_watchdog_sec, execution_watchdog_secs",
        "nereid.pined, nereid.pinned",
    })
    void suggestsTheParameterThatIsMeant(String misspelt, String meant) {
        assertThat(MisspeltParameters.of(read(Map.of(misspelt, "1"))))
                .containsExactly("unknown parameter '" + misspelt + "' has no effect; did you mean '" + meant + "'?");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "intra_op_thread_count",
                "execution_watchdog_secs",
                "session.any",
                "labels",
                "gpu_mem_limit",
                "nereid.pinned",
                "TRITON_BATCH_STRATEGY_PATH",
                "TRITON_GRAPH_TAG"
            })
    void suggestsNothingForKnownNamesAndForOthers(String name) {
        assertThat(MisspeltParameters.of(read(Map.of(name, "1")))).isEmpty();
    }

    @Test
    void suggestsOnlyWhatIsMissingAfterAFailure() {
        ModelParameters parameters =
                ModelParameters.of(Map.of("encodr", "m", "inter_op_thread_count", "2", "intra_op_thread_count", "2"));
        parameters.text("intra_op_thread_count");
        parameters.text("encoder");

        assertThat(MisspeltParameters.ofFailure(parameters))
                .containsExactly("unknown parameter 'encodr' has no effect; did you mean 'encoder'?");
    }

    @Test
    void suggestsNothingWhereAllAreRead() {
        ModelParameters parameters = read(Map.of("intra_op_thread_cuont", "1"));
        parameters.asMap();

        assertThat(MisspeltParameters.of(parameters)).isEmpty();
    }

    @Test
    void suggestsNothingForNamesOfAnyLength() {
        assertThat(MisspeltParameters.of(
                        read(Map.of("intra_op_thread_count".repeat(100_000), "1", "", "2", "\0", "3"))))
                .isEmpty();
    }
}
