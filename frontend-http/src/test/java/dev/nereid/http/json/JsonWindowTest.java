package dev.nereid.http.json;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class JsonWindowTest {
    private static final int STRETCH = 8192;

    @ParameterizedTest
    @ValueSource(strings = {"plain", "with \\\"escape\\u0041", "gr\u00fc\u00df", ""})
    void readsKeysAndStringsAcrossWindowBoundaries(String value) {
        String expected = value.replace("\\\"", "\"").replace("\\u0041", "A");
        for (int blanks = STRETCH - 40; blanks < STRETCH + 2; blanks++) {
            JsonReader json = reader(" ".repeat(blanks) + "{\"na" + value + "\":\"" + value + "\",\"second\":1}");

            json.begin();
            assertThat(json.firstMember()).isTrue();
            // Keys are compared with ASCII names only.
            assertThat(json.keyIs("na" + expected)).isEqualTo(expected.chars().allMatch(c -> c < 0x80));
            assertThat(json.keyIs("na" + expected + "x")).isFalse();
            assertThat(json.key()).isEqualTo("na" + expected);
            assertThat(json.readString()).as("behind %d blanks", blanks).isEqualTo(expected);
            assertThat(json.nextMember()).isTrue();
            assertThat(json.keyIs("second")).isTrue();
            assertThat(json.keyIs("secund")).isFalse();
        }
    }

    private static JsonReader reader(String text) {
        return new JsonReader(MemorySegment.ofArray(text.getBytes(StandardCharsets.UTF_8)));
    }
}
