package dev.nereid.distribution.flags;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

final class MetricsFlagsTest {
    private static MetricsFlags read(String... arguments) throws UsageException {
        MetricsFlags metrics = new MetricsFlags();
        Flags flags = new Flags();
        metrics.declare(flags);
        flags.read(List.of(arguments), Map.of());
        return metrics;
    }

    @Test
    void reportsOfEverythingByDefault() throws UsageException {
        MetricsFlags flags = read();

        assertThat(flags.allow && flags.allowCpu && flags.allowGpu && flags.countLatencies)
                .isTrue();
        assertThat(flags.interval).isEqualTo(Duration.ofSeconds(2));
    }

    @Test
    void takesTheFlagsOfTheReference() throws UsageException {
        MetricsFlags flags = read(
                "--allow-metrics=true",
                "--allow-gpu-metrics=false",
                "--allow-cpu-metrics=false",
                "--metrics-interval-ms=500",
                "--metrics-config=histogram_latencies=true",
                "--metrics-config=summary_quantiles=0.5:0.05,0.9:0.01",
                "--metrics-config=own_idea=1");

        assertThat(flags.allowCpu || flags.allowGpu).isFalse();
        assertThat(flags.interval).isEqualTo(Duration.ofMillis(500));
        assertThat(flags.countLatencies).isTrue();
    }

    @Test
    void theLastOfSeveralValuesCounts() throws UsageException {
        MetricsFlags flags =
                read("--metrics-port=1", "--allow-metrics=false", "--metrics-port", "2", "--allow-metrics=true");

        assertThat(flags.port).isEqualTo(2);
        assertThat(flags.allow).isTrue();
    }

    @Test
    void takesTheAddressOfHttpIfThatIsServed() throws UsageException {
        HttpFlags http = new HttpFlags();
        http.options.address = "192.0.2.1";
        String ofHttp = read().address(http);
        http.allow = false;

        assertThat(ofHttp).isEqualTo("192.0.2.1");
        assertThat(read().address(http)).isEqualTo(new HttpFlags().options.address);
        assertThat(read("--metrics-address=192.0.2.2").address(http)).isEqualTo("192.0.2.2");
    }

    @ParameterizedTest
    @CsvSource({"false, false", "False, true", "0, true", "true, true", "'', true"})
    void onlyTheExactWordStopsLatencies(String value, boolean counted) throws UsageException {
        assertThat(read("--metrics-config=counter_latencies=" + value).countLatencies)
                .isEqualTo(counted);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"--metrics-config=counter_latencies", "--metrics-config==false", "--allow-gpu-metrics=maybe"})
    void refusesWhatIsNoSetting(String flag) {
        assertThatExceptionOfType(UsageException.class).isThrownBy(() -> read(flag));
    }
}
