package dev.nereid.benchmarks.report;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

final class FirstMinuteTest {
    @Test
    void findsTheRateOfEachSecondSinceTheStart() throws IOException {
        FirstMinute minute = FirstMinute.in("outcome 1\ntenths " + tenths(15) + "\n");

        assertThat(minute.seconds()).startsWith(50, 100, 300, 1000).hasSize(15);
        assertThat(minute.firstSecond()).isEqualTo(100);
        assertThat(minute.finalRate()).isEqualTo(1000);
        assertThat(minute.secondsToSpeed()).isEqualTo(3.5);
        assertThat(minute.first(3)).isEqualTo("50  100  300");
    }

    @Test
    void refusesAnOutputWithoutTenths() {
        assertThatThrownBy(() -> FirstMinute.in("outcome 1")).hasMessage("wrk printed no tenths: outcome 1");
    }

    /** Starts within half a second; 10 a tenth until 2 s, 30 in the third second, 100 from then on. */
    private static String tenths(int seconds) {
        return IntStream.range(0, seconds * 10)
                .map(tenth -> tenth < 5 ? 0 : tenth < 20 ? 10 : tenth < 30 ? 30 : 100)
                .mapToObj(Integer::toString)
                .collect(Collectors.joining(" "));
    }
}
