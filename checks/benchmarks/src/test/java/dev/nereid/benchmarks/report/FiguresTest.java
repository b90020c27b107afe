package dev.nereid.benchmarks.report;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import org.junit.jupiter.api.Test;

final class FiguresTest {
    @Test
    void showsRatesWithAsManyDigitsAsTheyHaveMeaning() {
        assertThat(Figures.rate(99.94)).isEqualTo("99.9/s");
        assertThat(Figures.rate(152_345.6)).isEqualTo("152,346/s");
    }

    @Test
    void showsLatenciesInTheUnitThatFits() {
        assertThat(Figures.latency(310)).isEqualTo("310 us");
        assertThat(Figures.latency(3_104)).isEqualTo("3.10 ms");
        assertThat(Figures.latency(310_400)).isEqualTo("310 ms");
    }

    @Test
    void takesTheMiddleOfNumbersInAnyOrder() {
        assertThat(Figures.median(List.of(3.0, 1.0, 2.0))).isEqualTo(2);
        assertThat(Figures.median(List.of(4.0, 1.0, 2.0, 3.0))).isEqualTo(2.5);
        assertThatThrownBy(() -> Figures.median(List.of())).isInstanceOf(IllegalArgumentException.class);
    }
}
