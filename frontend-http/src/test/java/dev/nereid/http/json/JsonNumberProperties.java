package dev.nereid.http.json;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.MemorySegment;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.MathContext;
import java.math.RoundingMode;
import java.nio.charset.StandardCharsets;
import net.jqwik.api.Assume;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.BigRange;
import net.jqwik.api.constraints.IntRange;

/** Numbers are read exactly, and read back as written. */
class JsonNumberProperties {
    private static final BigInteger TWO_63 = BigInteger.ONE.shiftLeft(63);
    private static final BigInteger TWO_64 = BigInteger.ONE.shiftLeft(64);

    @Property
    void readsWholeNumbers(
            @ForAll @BigRange(min = "-100000000000000000000", max = "100000000000000000000") BigInteger number) {
        JsonNumber read = read(number.toString());

        assertThat(read.isUnsigned()).isEqualTo(number.signum() >= 0 && number.compareTo(TWO_64) < 0);
        assertThat(read.isSigned()).isEqualTo(number.compareTo(TWO_63) < 0 && number.compareTo(TWO_63.negate()) >= 0);
        if (read.isUnsigned() || read.isSigned()) {
            assertThat(read.bits()).isEqualTo(number.longValue());
        }
        assertThat(read.value()).isEqualTo(number.doubleValue());
    }

    @Example
    void readsTheEdges() {
        assertThat(read("18446744073709551615").isUnsigned()).isTrue();
        assertThat(read("18446744073709551616").isUnsigned()).isFalse();
        assertThat(read("99999999999999999999").isUnsigned()).isFalse();
        assertThat(read("9223372036854775807").isSigned()).isTrue();
        assertThat(read("9223372036854775808").isSigned()).isFalse();
        assertThat(read("-9223372036854775808").isSigned()).isTrue();
        assertThat(read("-9223372036854775809").isSigned()).isFalse();
        assertThat(read("-0").isUnsigned()).isTrue();
        assertThat(read("1.0").isSigned()).isFalse();
        assertThat(read("1e3").isSigned()).isFalse();
        assertThat(read("NaN").isSigned()).isFalse();
        assertThat(read("-0").value()).isEqualTo(0.0);
        assertThat(read("-0.0").value()).isEqualTo(-0.0);
        assertThat(read("NaN").value()).isNaN();
        assertThat(read("-Inf").value()).isEqualTo(Double.NEGATIVE_INFINITY);
        assertThat(read("1e-400").value()).isZero();
        assertThat(read("1.7976931348623157e308").value()).isEqualTo(Double.MAX_VALUE);
    }

    @Property
    void readsDecimals(@ForAll BigDecimal number, @ForAll @IntRange(min = -330, max = 300) int exponent) {
        String text = number.toPlainString() + "e" + exponent;

        assertThat(read(text).value() + 0.0).isEqualTo(Double.parseDouble(text) + 0.0);
        assertThat(read(text).floatValue() + 0.0f).isEqualTo(Float.parseFloat(text) + 0.0f);
    }

    @Property(tries = 20_000)
    void readsFloatsAndNumbersNearMidpoints(@ForAll int bits, @ForAll @IntRange(min = 1, max = 60) int digits) {
        float value = Float.intBitsToFloat(bits & Integer.MAX_VALUE);
        float next = Math.nextUp(value);
        Assume.that(Float.isFinite(next));
        BigDecimal middle = BigDecimal.valueOf(0.5).multiply(new BigDecimal(value).add(new BigDecimal(next)));

        assertReads(Float.toString(value));
        assertReads(Double.toString(value));
        assertReads(middle.toString());
        assertReads(middle.round(new MathContext(digits, RoundingMode.DOWN)).toString());
        assertReads(middle.round(new MathContext(digits, RoundingMode.UP)).toString());
    }

    @Property(tries = 20_000)
    void readsDoublesAndNumbersNearMidpoints(@ForAll long bits, @ForAll @IntRange(min = 1, max = 60) int digits) {
        double value = Double.longBitsToDouble(bits & Long.MAX_VALUE);
        double next = Math.nextUp(value);
        Assume.that(Double.isFinite(next));
        BigDecimal middle = BigDecimal.valueOf(0.5).multiply(new BigDecimal(value).add(new BigDecimal(next)));

        assertReads(Double.toString(value));
        assertReads(middle.round(new MathContext(digits, RoundingMode.DOWN)).toString());
        assertReads(middle.round(new MathContext(digits, RoundingMode.UP)).toString());
    }

    @Example
    void readsNumbersOfAnyLength() {
        String half = new BigDecimal(Float.MIN_VALUE)
                .multiply(BigDecimal.valueOf(0.5))
                .toPlainString();
        assertReads(half);
        assertReads(half + "0".repeat(2000) + "1");
        assertReads(new BigDecimal(Double.MIN_VALUE).toPlainString() + "0".repeat(2000) + "1");
        assertReads("0." + "0".repeat(100_000) + "12345e100001");
        assertReads("1" + "0".repeat(100_000) + "e-100000");
        assertReads("1" + "0".repeat(100_000) + "1.5e-100001");
        assertReads("1e99999999999999999999");
        assertReads("1e-99999999999999999999");
        assertReads("0e99999999999999999999");
        assertReads("0." + "0".repeat(50) + "1e45");
    }

    private static void assertReads(String text) {
        JsonNumber number = read(text.replace("E+", "e"));

        assertThat(Float.valueOf(number.floatValue())).isEqualTo(Float.valueOf(Float.parseFloat(text)));
        assertThat(Double.valueOf(number.value())).isEqualTo(Double.valueOf(Double.parseDouble(text)));
    }

    @Property
    void writesDoublesThatReadBack(@ForAll long bits) {
        double value = Double.longBitsToDouble(bits);

        Double back = read(write(new JsonWriter().real(value))).value();

        assertThat(back).isEqualTo(Double.valueOf(value));
    }

    @Property
    void writesFloatsThatReadBack(@ForAll int bits) {
        float value = Float.intBitsToFloat(bits);

        Float back = read(write(new JsonWriter().real(value))).floatValue();

        assertThat(back).isEqualTo(Float.valueOf(value));
    }

    @Property
    void writesIntegers(@ForAll long value) {
        assertThat(write(new JsonWriter().integer(value))).isEqualTo(Long.toString(value));
        assertThat(write(new JsonWriter().unsigned(value))).isEqualTo(Long.toUnsignedString(value));
    }

    private static JsonNumber read(String text) {
        // Plain numbers have a fast path if something follows them.
        JsonNumber last = readFrom(text, text);
        JsonNumber number = readFrom(text, text + ",");
        assertThat(Double.valueOf(number.value())).isEqualTo(Double.valueOf(last.value()));
        assertThat(Float.valueOf(number.floatValue())).isEqualTo(Float.valueOf(last.floatValue()));
        assertThat(number.isSigned()).isEqualTo(last.isSigned());
        assertThat(number.isUnsigned()).isEqualTo(last.isUnsigned());
        return number;
    }

    private static JsonNumber readFrom(String text, String json) {
        byte[] bytes = json.getBytes(StandardCharsets.US_ASCII);
        JsonNumber number = new JsonNumber();
        assertThat(number.read(new JsonWindow(MemorySegment.ofArray(bytes)), 0)).isEqualTo(text.length());
        return number;
    }

    private static String write(JsonWriter json) {
        return new String(json.toByteArray(), StandardCharsets.US_ASCII);
    }
}
