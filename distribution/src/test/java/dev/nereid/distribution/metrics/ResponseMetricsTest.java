package dev.nereid.distribution.metrics;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.statistics.HeldResponses;
import dev.nereid.api.statistics.ModelVersionTags;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

final class ResponseMetricsTest {
    @Test
    void reportsOpenResponsesByTheirHolder() {
        HeldResponses held = new HeldResponses(new ModelVersionTags("m", 2, Map.of("team", "a")), 3);

        assertThat(new String(ModelUseMetrics.responses(List.of(held)), StandardCharsets.UTF_8).lines())
                .filteredOn(line -> !line.startsWith("#"))
                .containsExactly("nereid_model_responses_open{_team=\"a\",model=\"m\",version=\"2\"} 3");
        assertThat(ModelUseMetrics.responses(List.of())).isEmpty();
    }
}
