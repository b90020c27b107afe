package dev.nereid.distribution.metrics;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class PlainNumbersTest {
    @ParameterizedTest
    @CsvSource({
        "9.93067008E8, 993067008",
        "2.0, 2",
        "0.0, 0",
        "100.0, 100",
        "-1.0, -1",
        "0.25, 0.25",
        "1.7E-5, 0.000017",
        "1.763845123456E9, 1763845123.456",
        "1.7976931348623157E308, 179769313486231570000000000000000000000000000000000000000000000000000000000000000000"
                + "000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
                + "000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
                + "000000000000000000000000000000000",
        "NaN, NaN",
        "+Inf, +Inf",
        "-Inf, -Inf",
    })
    void writesValuesWithoutExponent(String value, String plain) {
        assertThat(PlainNumbers.in("a{b=\"c 1.0 d\"} " + value + "\n")).isEqualTo("a{b=\"c 1.0 d\"} " + plain + "\n");
        assertThat(PlainNumbers.in("a " + value + "\n")).isEqualTo("a " + plain + "\n");
    }

    @ParameterizedTest
    @CsvSource({"# HELP a about 1.0", "# TYPE a gauge"})
    void leavesCommentsAlone(String line) {
        assertThat(PlainNumbers.in(line + "\n")).isEqualTo(line + "\n");
    }
}
