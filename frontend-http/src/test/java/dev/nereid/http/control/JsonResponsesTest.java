package dev.nereid.http.control;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.http.json.JsonWriter;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Jackson writes what the writer of inference responses writes. */
class JsonResponsesTest {
    @ParameterizedTest
    @ValueSource(
            longs = {
                0,
                -1,
                9,
                10,
                Integer.MIN_VALUE,
                Integer.MAX_VALUE,
                1L << 32,
                999_999_999,
                1_000_000_000,
                -1_000_000_000_000_000_000L,
                Long.MIN_VALUE,
                Long.MAX_VALUE
            })
    void writesTheSameNumbers(long number) {
        assertThat(JsonResponses.write(json -> json.writeNumber(number)).getBytes())
                .isEqualTo(new JsonWriter().integer(number).toByteArray());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "plain",
                "\"\\/<>&'",
                "\b\f\n\r\t\u0000\u0001\u001f\u007f\u0080\u2028",
                "é漢",
                "\uD83D\uDE00",
                "\uD83D",
                "\uDE00x",
            })
    void writesTheSameStrings(String text) {
        assertThat(JsonResponses.write(json -> JsonResponses.writeString(json, text))
                        .toString(StandardCharsets.UTF_8))
                .isEqualTo(new String(new JsonWriter().string(text).toByteArray(), StandardCharsets.UTF_8));
    }

    @ParameterizedTest
    @ValueSource(ints = {8_000, 100_000})
    void writesLongStrings(int length) {
        String text = "é\"".repeat(length);

        assertThat(JsonResponses.write(json -> JsonResponses.writeString(json, text))
                        .getBytes())
                .isEqualTo(new JsonWriter().string(text).toByteArray());
    }
}
