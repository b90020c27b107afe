package dev.nereid.benchmarks.run;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.benchmarks.report.Sample;
import dev.nereid.benchmarks.report.Table;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class BuildComparisonTest {
    private final List<String> order = new ArrayList<>();

    @Test
    void startsEachRoundWithAnotherBuild() throws Exception {
        Table table = BuildComparison.table();

        new BuildComparison(build("new", 98), build("old", 100), build("again", 101))
                .run(new Pace(Duration.ofSeconds(5), Duration.ofSeconds(2), 2), table);

        assertThat(order)
                .containsExactly("new 5", "old 5", "again 5", "new 2", "old 2", "again 2", "old 2", "again 2", "new 2");
        assertThat(table.text()).containsPattern("new +100/s +98.0/s +-2.0 % +\\+1.0 % +2 us +2 us +met");
    }

    @ParameterizedTest
    @CsvSource({"1.05, 1, true", "0.98, 1, true", "0.96, 1, false", "0.96, 0.95, true", "0.96, 1.05, true"})
    void allowsThreePercentOrWhatTheOldBuildDiffersFromItself(double change, double chance, boolean kept) {
        assertThat(BuildComparison.isKept(change, chance)).isEqualTo(kept);
    }

    private Workload build(String name, double rate) {
        return new Workload() {
            @Override
            public String name() {
                return name;
            }

            @Override
            public Sample load(Duration time) {
                order.add(name + " " + time.toSeconds());
                return new Sample(rate, 1, 2);
            }
        };
    }
}
