package dev.nereid.distribution.metrics;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.statistics.GpuCounters;
import dev.nereid.api.statistics.MetricCounters;
import dev.nereid.api.statistics.MicrosCounters;
import dev.nereid.api.statistics.ModelStatistics;
import dev.nereid.testkit.FakeStatistics;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Optional;
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

    /** The series of a version add up to its figures, whatever is executed where. */
    @Test
    void executionsOnGpusHaveSeriesOfTheirOwn() {
        ModelStatistics plain = FakeStatistics.of("m", 1, 9);
        MetricCounters own = plain.metrics();
        ModelStatistics model = new ModelStatistics(
                plain.model(),
                plain.executions(),
                plain.inferences(),
                plain.responses(),
                plain.memory(),
                new MetricCounters(
                        own.failures(),
                        new MicrosCounters(100, 90, 80, 70, 60, 0, 0),
                        false,
                        0,
                        0,
                        0,
                        List.of(
                                new GpuCounters(0, 1, 2, 3, new MicrosCounters(10, 9, 8, 7, 6, 0, 0)),
                                new GpuCounters(1, 2, 4, 5, new MicrosCounters(20, 18, 16, 14, 12, 0, 0)),
                                new GpuCounters(2, 1, 1, 1, new MicrosCounters(1, 1, 1, 1, 1, 0, 0)))));

        String text = new String(
                new ModelMetrics(List.of(model), true, gpu -> gpu == 2 ? Optional.empty() : Optional.of("GPU-" + gpu))
                        .counters(),
                StandardCharsets.UTF_8);

        assertThat(text.lines())
                .contains(
                        "nv_inference_exec_count{gpu_uuid=\"GPU-0\",model=\"m\",version=\"1\"} 3",
                        "nv_inference_exec_count{gpu_uuid=\"GPU-1\",model=\"m\",version=\"1\"} 5",
                        "nv_inference_exec_count{model=\"m\",version=\"1\"} 1",
                        "nv_inference_request_success{gpu_uuid=\"GPU-1\",model=\"m\",version=\"1\"} 2",
                        "nv_inference_count{gpu_uuid=\"GPU-1\",model=\"m\",version=\"1\"} 4",
                        "nv_inference_request_duration_us{gpu_uuid=\"GPU-0\",model=\"m\",version=\"1\"} 10",
                        "nv_inference_request_duration_us{model=\"m\",version=\"1\"} 70",
                        "nv_inference_queue_duration_us{model=\"m\",version=\"1\"} 63",
                        "nv_inference_compute_input_duration_us{model=\"m\",version=\"1\"} 56",
                        "nv_inference_compute_infer_duration_us{model=\"m\",version=\"1\"} 49",
                        "nv_inference_compute_output_duration_us{model=\"m\",version=\"1\"} 42")
                .noneMatch(line -> line.contains("failure") && line.contains("gpu_uuid"))
                .noneMatch(line -> line.contains("input_copies") && line.contains("gpu_uuid"));
    }

    private static String text(boolean latencies) {
        return new String(
                new ModelMetrics(List.of(FakeStatistics.of("m", 1, 2)), latencies, _ -> Optional.empty()).counters(),
                StandardCharsets.UTF_8);
    }
}
