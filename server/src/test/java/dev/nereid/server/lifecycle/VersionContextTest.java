package dev.nereid.server.lifecycle;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.server.files.FileCopies;
import dev.nereid.server.repository.ModelDirectory;
import dev.nereid.spi.Device;
import dev.nereid.spi.Metrics;
import dev.nereid.spi.ModelSettings;
import dev.nereid.testkit.RecordedLog;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class VersionContextTest {
    private static final List<String> NAMES = List.of("intra_op_thread_count", "TF_GRAPH_TAG", "session.");

    private final RecordedLog log = new RecordedLog();

    @ParameterizedTest
    @CsvSource({
        "intra_op_thread_cuont, intra_op_thread_count",
        "Intra-Op-Thread-Count, intra_op_thread_count",
        "tf_graph_tags, TF_GRAPH_TAG",
        "execution_watchdog_sec, execution_watchdog_secs",
    })
    void suggestsTheParameterThatIsMeant(String misspelt, String meant) {
        context(misspelt, List.of(Device.CPU)).declareParameters(NAMES);

        assertThat(log.lines())
                .containsExactly(
                        "WARNING unknown parameter '" + misspelt + "' has no effect; did you mean '" + meant + "'?");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"intra_op_thread_count", "execution_watchdog_secs", "session.any", "labels", "gpu_mem_limit"})
    void suggestsNothingForKnownNamesAndForOthers(String name) {
        context(name, List.of(Device.CPU)).declareParameters(NAMES);

        assertThat(log.lines()).isEmpty();
    }

    /** The load follows, with the same parameters. */
    @Test
    void suggestsNothingWhileAConfigurationIsCompleted() {
        context("intra_op_thread_cuont", List.of()).declareParameters(NAMES);

        assertThat(log.lines()).isEmpty();
    }

    private VersionContext context(String parameter, List<Device> instances) {
        return new VersionContext(
                ModelSettings.builder("m", 1).parameter(parameter, "1").build(),
                Path.of("m"),
                Path.of("m/1"),
                instances,
                log,
                Optional.empty(),
                new FileCopies(Path.of("none")).of(new ModelDirectory(Path.of("."), "m")),
                Metrics.unpublished());
    }

    @Test
    void hasMetricsAndTracesThatThrowNothing() {
        VersionContext context = context("p", List.of());

        context.metrics().counter("requests", "Requests.", Map.of("kind", "a")).increment(1);
        assertThat(context.metrics().counter("requests", "Requests.", Map.of("kind", "a")))
                .as("of the same context")
                .isSameAs(context.metrics().counter("requests", "Requests.", Map.of("kind", "a")));
        assertThat(context.tracing()).isSameAs(context.tracing());
    }
}
