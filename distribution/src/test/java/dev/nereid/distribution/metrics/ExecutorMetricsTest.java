package dev.nereid.distribution.metrics;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.statistics.ExecutorUse;
import dev.nereid.api.statistics.ModelVersionTags;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

final class ExecutorMetricsTest {
    @Test
    void reportsThreadsAndWaitingTasksByModel() {
        ExecutorUse use = new ExecutorUse(new ModelVersionTags("m", 2, Map.of("team", "a")), 3, 40);

        assertThat(new String(ModelUseMetrics.executors(List.of(use)), StandardCharsets.UTF_8).lines())
                .filteredOn(line -> !line.startsWith("#"))
                .containsExactly(
                        "nereid_executor_threads{_team=\"a\",model=\"m\",version=\"2\"} 3",
                        "nereid_executor_waiting_tasks{_team=\"a\",model=\"m\",version=\"2\"} 40");
        assertThat(ModelUseMetrics.executors(List.of())).isEmpty();
    }
}
