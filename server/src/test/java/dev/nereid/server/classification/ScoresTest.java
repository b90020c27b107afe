package dev.nereid.server.classification;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.DataType;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** The expected texts are those of printf("%.6f"), which the reference server's are. */
final class ScoresTest {
    @ParameterizedTest
    @CsvSource({
        "1, 1.000000",
        "0.4, 0.400000",
        "-0.0, -0.000000",
        "-1e-9, -0.000000",
        "5e-7, 0.000000",
        "1.5e-6, 0.000002",
        "0.0078125, 0.007812",
        "0.0234375, 0.023438",
        "NaN, nan",
        "Infinity, inf",
        "-Infinity, -inf",
        "1e22, 10000000000000000000000.000000"
    })
    void writesFractionsWithSixDecimals(double value, String text) {
        assertThat(Scores.FP64.text(doubles(value), 0)).isEqualTo(text);
    }

    @Test
    void writesTheExactValueOfAFloat() {
        MemorySegment floats = Arena.ofAuto().allocateFrom(ValueLayout.JAVA_FLOAT, 1e38f, 0.1f);

        assertThat(Scores.FP32.text(floats, 0)).isEqualTo("99999996802856924650656260769173209088.000000");
        assertThat(Scores.FP32.text(floats, 1)).isEqualTo("0.100000");
    }

    @Test
    void ordersNumbersBySizeAndWhatIsNoNumberLast() {
        MemorySegment data = doubles(Double.NaN, Double.NEGATIVE_INFINITY, -1, -0.0, 0.0, 1e-300, 7, 1e300);

        for (int i = 1; i < 8; i++) {
            assertThat(Scores.FP64.rank(data, i - 1)).isLessThanOrEqualTo(Scores.FP64.rank(data, i));
        }
        assertThat(Scores.FP64.rank(data, 3)).isEqualTo(Scores.FP64.rank(data, 4));
        assertThat(Scores.FP64.rank(data, 0)).isLessThan(Scores.FP64.rank(data, 1));
    }

    @ParameterizedTest
    @CsvSource({
        "UINT8, 255",
        "INT8, -1",
        "UINT16, 65535",
        "INT16, -1",
        "UINT32, 4294967295",
        "INT32, -1",
        "INT64, -1",
        "UINT64, 18446744073709551615"
    })
    void readsWholeNumbersOfEveryWidth(DataType type, String text) {
        MemorySegment data = Arena.ofAuto().allocate(17).fill((byte) 0xFF).asSlice(1);
        data.asSlice(0, type.byteSize()).fill((byte) 0);
        Scores scores = Scores.of(type).orElseThrow();

        assertThat(scores.text(data, 0)).isEqualTo("0");
        assertThat(scores.text(data, 1)).isEqualTo(text);
        assertThat(scores.rank(data, 1) > scores.rank(data, 0)).isEqualTo(!text.startsWith("-"));
    }

    @ParameterizedTest
    @EnumSource(names = {"BOOL", "FP16", "BF16", "BYTES"})
    void knowsNoOrderOfOtherTypes(DataType type) {
        assertThat(Scores.of(type)).isEmpty();
    }

    private static MemorySegment doubles(double... values) {
        return Arena.ofAuto().allocateFrom(ValueLayout.JAVA_DOUBLE, values);
    }
}
