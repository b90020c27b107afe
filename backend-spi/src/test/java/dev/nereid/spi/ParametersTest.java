package dev.nereid.spi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;

import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests how values of parameters are read, and what is said of those that do not fit. */
final class ParametersTest {
    private static Parameters given(Object value) {
        return Parameters.of(Map.of("p", value));
    }

    private static void assertInvalid(ThrowingCallable read, String message) {
        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(read)
                .matches(error -> error.code() == ErrorCode.INVALID_ARGUMENT)
                .withMessage(message);
    }

    @Test
    void isEmptyForWhatIsMissing() {
        Parameters none = Parameters.of(Map.of("other", 1L));

        assertThat(none.value("p")).isEmpty();
        assertThat(none.text("p")).isEmpty();
        assertThat(none.choice("p", "a")).isEmpty();
        assertThat(none.integer("p", 1, 2)).isEmpty();
        assertThat(none.longInteger("p", 1, 2)).isEmpty();
        assertThat(none.number("p", 1, 2)).isEmpty();
        assertThat(none.flag("p")).isEmpty();
        String missing = "parameter 'p': missing (expected: a value for it)";
        assertInvalid(() -> none.required("p"), missing);
        assertInvalid(() -> none.integer("p", 1, 2).orElseThrow(none.missing("p")), missing);
    }

    @Test
    void readsTexts() {
        assertThat(given("").text("p")).contains("");
        assertThat(given("é\0").required("p")).isEqualTo("é\0");
        assertThat(given("b").choice("p", "a", "b")).contains("b");
        assertInvalid(() -> given(5L).text("p"), "parameter 'p': 5 (expected: a text)");
        assertInvalid(() -> given(true).required("p"), "parameter 'p': true (expected: a text)");
        assertInvalid(() -> given("B").choice("p", "a", "b"), "parameter 'p': B (expected: one of [a, b])");
        assertInvalid(() -> given(0.5).choice("p", "a"), "parameter 'p': 0.5 (expected: one of [a])");
    }

    @Test
    void readsIntegersWithinTheirBounds() {
        assertThat(given(1L).integer("p", 1, 512)).hasValue(1);
        assertThat(given(512L).integer("p", 1, 512)).hasValue(512);
        assertThat(given("-7").integer("p", -7, 0)).hasValue(-7);
        assertThat(given((long) Integer.MIN_VALUE).integer("p", Integer.MIN_VALUE, Integer.MAX_VALUE))
                .hasValue(Integer.MIN_VALUE);
        assertThat(given(Long.MAX_VALUE).longInteger("p", Long.MIN_VALUE, Long.MAX_VALUE))
                .hasValue(Long.MAX_VALUE);
        assertThat(given("-9223372036854775808").longInteger("p", Long.MIN_VALUE, 0))
                .hasValue(Long.MIN_VALUE);
        assertInvalid(() -> given(0L).integer("p", 1, 512), "parameter 'p': 0 (expected: 1 to 512)");
        assertInvalid(() -> given("513").integer("p", 1, 512), "parameter 'p': 513 (expected: 1 to 512)");
        assertInvalid(
                () -> given(1L << 32).integer("p", Integer.MIN_VALUE, Integer.MAX_VALUE),
                "parameter 'p': 4294967296 (expected: -2147483648 to 2147483647)");
        assertInvalid(
                () -> given("9223372036854775808").longInteger("p", 0, Long.MAX_VALUE),
                "parameter 'p': 9223372036854775808 (expected: an integer, 0 to 9223372036854775807)");
        assertInvalid(() -> given(3.0).integer("p", 1, 5), "parameter 'p': 3.0 (expected: an integer, 1 to 5)");
        assertInvalid(() -> given(true).integer("p", 0, 1), "parameter 'p': true (expected: an integer, 0 to 1)");
        assertInvalid(() -> given("").longInteger("p", 0, 1), "parameter 'p':  (expected: an integer, 0 to 1)");
    }

    @Test
    void readsNumbersWithinTheirBounds() {
        assertThat(given(0.5).number("p", 0, 1)).hasValue(0.5);
        assertThat(given(1L).number("p", 0, 1)).hasValue(1);
        assertThat(given("1e-3").number("p", 0, 1)).hasValue(0.001);
        assertThat(given(Double.POSITIVE_INFINITY).number("p", 0, Double.POSITIVE_INFINITY))
                .hasValue(Double.POSITIVE_INFINITY);
        assertInvalid(() -> given(-0.1).number("p", 0, 1), "parameter 'p': -0.1 (expected: 0 to 1)");
        assertInvalid(
                () -> given(Double.NaN).number("p", Double.NEGATIVE_INFINITY, Double.POSITIVE_INFINITY),
                "parameter 'p': NaN (expected: -Infinity to Infinity)");
        assertInvalid(() -> given("half").number("p", 0, 1), "parameter 'p': half (expected: a number, 0 to 1)");
        assertInvalid(() -> given(false).number("p", 0, 1), "parameter 'p': false (expected: a number, 0 to 1)");
    }

    @Test
    void readsTruthValues() {
        assertThat(given(true).flag("p")).contains(true);
        assertThat(given("false").flag("p")).contains(false);
        assertThat(given("true").flag("p")).contains(true);
        assertInvalid(() -> given("TRUE").flag("p"), "parameter 'p': TRUE (expected: true or false)");
        assertInvalid(() -> given(1L).flag("p"), "parameter 'p': 1 (expected: true or false)");
    }

    @Test
    void quotesTheBeginningOfLongValues() {
        String value = "x".repeat(255) + "😀".repeat(1000);

        assertInvalid(
                () -> given(value).integer("p", 0, 1),
                "parameter 'p': " + "x".repeat(255) + "… (expected: an integer, 0 to 1)");
    }

    @Test
    void hasAllValuesInTheirOrder() {
        Map<String, Object> values = new LinkedHashMap<>();
        values.put("b", "text");
        values.put("a", 1L);
        values.put("d", 0.5);
        values.put("c", true);
        Parameters parameters = Parameters.of(values);
        values.clear();

        assertThat(parameters.asMap())
                .containsExactly(Map.entry("b", "text"), Map.entry("a", 1L), Map.entry("d", 0.5), Map.entry("c", true));
        assertThat(parameters.asMap()).isUnmodifiable();
        assertThat(parameters.value("d")).contains(0.5);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> given(1))
                .withMessage("parameter 'p': java.lang.Integer (expected: a String, Long, Double or Boolean)");
        values.put("p", null);
        assertThatNullPointerException().isThrownBy(() -> Parameters.of(values));
    }

    @ParameterizedTest
    @CsvSource({
        "0, 0",
        "250, 250000000",
        "250ms, 250000000",
        "5s, 5000000000",
        "3us, 3000",
        "7ns, 7",
        "2m, 120000000000",
        "1h, 3600000000000",
        "1d, 86400000000000",
        "9223372036854775807ns, 9223372036854775807"
    })
    void readsDurations(String text, long nanos) {
        assertThat(given(text).duration("p", TimeUnit.MILLISECONDS)).contains(Duration.ofNanos(nanos));
    }

    @Test
    void readsDurationsOfRequests() {
        assertThat(given(3L).duration("p", TimeUnit.SECONDS)).contains(Duration.ofSeconds(3));
        assertThat(Parameters.of(Map.of()).duration("p", TimeUnit.SECONDS)).isEmpty();
        String expected =
                " (expected: 0 or more seconds, or a number with ns, us, ms, s, m, h or d; at most 292 years)";
        assertInvalid(() -> given(-3L).duration("p", TimeUnit.SECONDS), "parameter 'p': -3" + expected);
        assertInvalid(() -> given(0.5).duration("p", TimeUnit.SECONDS), "parameter 'p': 0.5" + expected);
        assertInvalid(() -> given(true).duration("p", TimeUnit.SECONDS), "parameter 'p': true" + expected);
        assertInvalid(
                () -> given(Long.MAX_VALUE).duration("p", TimeUnit.SECONDS),
                "parameter 'p': 9223372036854775807" + expected);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                " ",
                "ms",
                "-1",
                "+1",
                "1.5s",
                "1 s",
                "1S",
                "1sec",
                "\0",
                "9223372036854775808",
                "9223372036854775807ms",
                "106752d",
                "٣",
                "1e3"
            })
    void refusesWhatIsNoDuration(String text) {
        assertInvalid(
                () -> given(text).duration("p", TimeUnit.MILLISECONDS),
                "parameter 'p': " + text
                        + " (expected: 0 or more milliseconds, or a number with ns, us, ms, s, m, h or d;"
                        + " at most 292 years)");
    }

    @ParameterizedTest
    @CsvSource({
        "0, 0",
        "1000, 1000",
        "64K, 65536",
        "64k, 65536",
        "64KiB, 65536",
        "3M, 3145728",
        "2g, 2147483648",
        "1TiB, 1099511627776",
        "9223372036854775807, 9223372036854775807",
        "8388607T, 9223370937343148032"
    })
    void readsNumbersOfBytes(String text, long bytes) {
        assertThat(given(text).byteSize("p")).hasValue(bytes);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "K",
                "-1",
                "1.5M",
                "1 M",
                "1MB",
                "1P",
                "8388608T",
                "9223372036854775808",
                "99999999999999999999",
                "\0"
            })
    void refusesWhatIsNoNumberOfBytes(String text) {
        assertInvalid(
                () -> given(text).byteSize("p"),
                "parameter 'p': " + text + " (expected: 0 or more bytes, or a number with K, M, G or T)");
    }

    @Test
    void readsNumbersOfBytesOfRequests() {
        assertThat(given(7L).byteSize("p")).hasValue(7);
        assertThat(Parameters.of(Map.of()).byteSize("p")).isEmpty();
        assertInvalid(
                () -> given("9".repeat(1 << 20)).byteSize("p"),
                "parameter 'p': " + "9".repeat(256) + "… (expected: 0 or more bytes, or a number with K, M, G or T)");
        assertInvalid(
                () -> given(1.0).byteSize("p"),
                "parameter 'p': 1.0 (expected: 0 or more bytes, or a number with K, M, G or T)");
    }

    @Test
    void selectsByTheBeginningOfNames() {
        Parameters all = Parameters.of(Map.of("a.x", "1", "a.y", "2", "b.x", "3", "a", "4"));
        Parameters selected = all.under("a.");

        assertThat(selected.asMap()).containsOnlyKeys("a.x", "a.y").isUnmodifiable();
        assertThat(selected.integer("a.x", 0, 9)).hasValue(1);
        assertThat(selected.text("b.x")).isEmpty();
        assertThat(selected.under("a.y").asMap()).containsOnlyKeys("a.y");
        assertThat(selected.under("b").asMap()).isEmpty();
        assertThat(all.under("").asMap()).hasSize(4);
        assertInvalid(() -> selected.flag("a.y"), "parameter 'a.y': 2 (expected: true or false)");
        assertInvalid(() -> selected.required("b.x"), "parameter 'b.x': missing (expected: a value for it)");
    }

    @Test
    void wordsErrorsOfOtherForms() {
        assertThat(given("1x").invalid("p", "a shape"))
                .hasMessage("parameter 'p': 1x (expected: a shape)")
                .matches(error -> error.code() == ErrorCode.INVALID_ARGUMENT);
        assertThat(given("1x").invalid("q", "a shape")).hasMessage("parameter 'q': missing (expected: a shape)");
    }
}
