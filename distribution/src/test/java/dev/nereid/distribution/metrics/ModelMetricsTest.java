package dev.nereid.distribution.metrics;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.testkit.FakeStatistics;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.junit.jupiter.api.Test;

final class ModelMetricsTest {
    @Test
    void withoutLatenciesAllOtherCountersAreThere() {
        String all = text(true);
        String less = text(false);

        assertThat(all).contains("nv_inference_request_duration_us{", "nv_inference_compute_output_duration_us{");
        assertThat(less)
                .contains(
                        "nv_inference_request_success{",
                        "nv_inference_request_failure{",
                        "nv_inference_count{",
                        "nv_inference_exec_count{")
                .doesNotContain("_duration_");
    }

    private static String text(boolean latencies) {
        return new String(
                new ModelMetrics(List.of(FakeStatistics.of("m", 1, 2)), latencies).counters(), StandardCharsets.UTF_8);
    }
}
