package dev.nereid.distribution.metrics;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.ModelStatus;
import dev.nereid.api.statistics.ModelStatistics;
import dev.nereid.api.statistics.ModelVersionTags;
import dev.nereid.testkit.FakeInferenceServer;
import dev.nereid.testkit.FakeStatistics;
import dev.nereid.testkit.LeakCheckingMemory;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import org.junit.jupiter.api.Test;

final class ServerMetricsTest {
    private final FakeInferenceServer server = new FakeInferenceServer(new LeakCheckingMemory());

    @Test
    void hasTheSeriesOfModelsWithHostileNamesAndTags() {
        String hostile = "a\"b\\c\nd\r\0\u001b[31m\u202e\ud800{} 1\n# TYPE x counter";
        server.setStatistics(List.of(
                model(hostile, Long.MAX_VALUE, Map.of("", hostile, "_reserved", "1", "__name__", "2", "model", "3")),
                model("n", 1, Map.of("a b", "4", "a.b", "5", "\u00e4\n\"}", "6"))));

        List<String> lines = lines();

        assertThat(lines)
                .filteredOn(line -> !line.startsWith("#"))
                .allMatch(line -> line.matches("(?s)[a-zA-Z_:][a-zA-Z0-9_:]*(\\{.*})? \\S+"), "sample");
        assertThat(lines)
                .filteredOn(line -> line.startsWith("nv_inference_pending_request_count{"))
                .hasSize(2)
                .anyMatch(line -> line.contains(",_reserved=\"1\",") && line.contains("_name__=\"2\""));
        assertThat(lines)
                .filteredOn(line -> line.startsWith("nv_inference_count{"))
                .hasSize(2)
                .anyMatch(line -> line.contains("version=\"9223372036854775807\""));
        assertThat(lines).noneMatch(line -> line.contains("{__") || line.contains(",__"));
    }

    @Test
    void aSourceThatFailsLeavesTheOthers() {
        server.setStatistics(List.of(model("m", 1, Map.of())));
        ConnectionCounts broken = new ConnectionCounts(
                "http",
                () -> {
                    throw new ArithmeticException("long overflow");
                },
                () -> 0);

        assertThat(lines(broken))
                .anyMatch(line -> line.startsWith("nereid_build_info{"))
                .anyMatch(line -> line.startsWith("nereid_tensor_memory_used_bytes "))
                .anyMatch(line -> line.startsWith("jvm_memory_used_bytes{"))
                .anyMatch(line -> line.startsWith("nv_inference_count{model=\"m\""))
                .noneMatch(line -> line.startsWith("nereid_connections"));
    }

    /** Each new version of a model unloads the one before: an alert on versions that are unavailable must not fire. */
    @Test
    void countsNoVersionsThatWereUnloaded() {
        server.setIndex(List.of(
                status(1, ModelStatus.State.UNAVAILABLE, "unloaded"),
                status(2, ModelStatus.State.UNAVAILABLE, "Internal: the file is broken"),
                status(3, ModelStatus.State.READY, "")));

        assertThat(lines())
                .contains("nereid_model_versions{state=\"UNAVAILABLE\"} 1", "nereid_model_versions{state=\"READY\"} 1");
    }

    private static ModelStatus status(long version, ModelStatus.State state, String reason) {
        return new ModelStatus("m", OptionalLong.of(version), state, reason);
    }

    private List<String> lines(ConnectionCounts... connections) {
        ServerMetrics metrics =
                new ServerMetrics(server, Optional.empty(), Optional.empty(), true, List.of(connections));
        return List.of(new String(metrics.text(), StandardCharsets.UTF_8).split("\n", -1)).stream()
                .filter(line -> !line.isEmpty())
                .toList();
    }

    private static ModelStatistics model(String name, long version, Map<String, String> tags) {
        ModelStatistics model = FakeStatistics.of(name, version, 1);
        return new ModelStatistics(
                new ModelVersionTags(name, version, tags),
                model.executions(),
                model.inferences(),
                model.responses(),
                model.memory(),
                model.metrics());
    }
}
