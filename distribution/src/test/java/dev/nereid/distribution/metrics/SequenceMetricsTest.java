package dev.nereid.distribution.metrics;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.statistics.ModelVersionTags;
import dev.nereid.api.statistics.SequenceEndReason;
import dev.nereid.api.statistics.SequenceStatistics;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

final class SequenceMetricsTest {
    @Test
    void reportsSequencesByModelAndEndsByReason() {
        SequenceStatistics sequences = new SequenceStatistics(
                new ModelVersionTags("m", 2, Map.of("team", "a")),
                7,
                3,
                4,
                8,
                1024,
                12,
                Map.of(SequenceEndReason.END, 5L, SequenceEndReason.INSTANCE_LOST, 2L));

        assertThat(samples(List.of(sequences)))
                .containsExactly(
                        "nereid_sequence_live{_team=\"a\",model=\"m\",version=\"2\"} 7",
                        "nereid_sequence_backlog{_team=\"a\",model=\"m\",version=\"2\"} 3",
                        "nereid_sequence_slots_used{_team=\"a\",model=\"m\",version=\"2\"} 4",
                        "nereid_sequence_slots{_team=\"a\",model=\"m\",version=\"2\"} 8",
                        "nereid_sequence_state_bytes{_team=\"a\",model=\"m\",version=\"2\"} 1024",
                        "nereid_sequence_state_copies_total{_team=\"a\",model=\"m\",version=\"2\"} 12",
                        ended("end", 5),
                        ended("idle", 0),
                        ended("cancelled", 0),
                        ended("replaced", 0),
                        ended("expired", 0),
                        ended("unloaded", 0),
                        ended("instance_lost", 2));
    }

    @Test
    void reportsNothingWithoutSuchModels() {
        assertThat(SequenceMetrics.text(List.of())).isEmpty();
    }

    private static String ended(String reason, int count) {
        return "nereid_sequence_ended_total{_team=\"a\",model=\"m\",reason=\"" + reason + "\",version=\"2\"} " + count;
    }

    private static List<String> samples(List<SequenceStatistics> models) {
        return new String(SequenceMetrics.text(models), StandardCharsets.UTF_8)
                .lines()
                .filter(line -> !line.startsWith("#"))
                .toList();
    }
}
