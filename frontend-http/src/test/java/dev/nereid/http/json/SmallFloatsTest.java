package dev.nereid.http.json;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Both 16-bit types round once, to the nearest, ties to even. */
class SmallFloatsTest {
    @Test
    void keepsEveryNumberOfBothTypes() {
        for (int bits = 0; bits <= 0xFFFF; bits++) {
            float half = SmallFloats.fromFp16((short) bits);
            if (!Float.isNaN(half)) {
                assertThat(SmallFloats.toFp16(half)).isEqualTo((short) bits);
            }
            float brain = SmallFloats.fromBf16((short) bits);
            if (!Float.isNaN(brain)) {
                assertThat(SmallFloats.toBf16(brain)).isEqualTo((short) bits);
            }
        }
        assertThat(SmallFloats.fromFp16(SmallFloats.toFp16(Double.NaN))).isNaN();
        assertThat(SmallFloats.fromBf16(SmallFloats.toBf16(Double.NaN))).isNaN();
    }

    @ParameterizedTest
    @CsvSource({
        // 1 + 2^-11 lies between 1 and 1 + 2^-10: the tie goes to the even one, anything more goes up.
        "1.00048828125, 1.0",
        "1.000488281250000001, 1.0",
        "1.0004882812500002, 1.0009765625",
        "1.00146484375, 1.001953125",
        "1.0014648437499998, 1.0009765625",
        "65504, 65504",
        "65519.99, 65504",
        "65520, Infinity",
        "-1e300, -Infinity",
        "2e-8, 0",
        "3e-8, 5.9604645e-8",
    })
    void roundsToHalfPrecisionOnce(double value, float expected) {
        assertThat(SmallFloats.fromFp16(SmallFloats.toFp16(value))).isEqualTo(expected);
    }

    @ParameterizedTest
    @CsvSource({
        "1.00390625, 1.0",
        "1.0039062500000002, 1.0078125",
        "1.01171875, 1.015625",
        "1.0117187499999998, 1.0078125",
        "3.4e38, Infinity",
        "3.39e38, 3.3895314e38",
        "-0.0, -0.0",
    })
    void roundsToBfloat16Once(double value, float expected) {
        assertThat(SmallFloats.fromBf16(SmallFloats.toBf16(value))).isEqualTo(expected);
    }
}
