package dev.nereid.http.json;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferenceException;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Accepted extensions of JSON, and error texts. */
class JsonReaderTest {
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '~',
            value = {
                "~~ | The document is empty. | 0",
                "~   ~ | The document is empty. | 3",
                "hello | Invalid value. | 0",
                "{\"inputs\":[ | Invalid value. | 11",
                "{} x | The document root must not be followed by other values. | 3",
                "/*c*/{} | Invalid value. | 0",
                "{'inputs':[]} | Missing a name for object member. | 1",
                "{\"a\":1,} | Missing a name for object member. | 7",
                "{\"a\" 1} | Missing a colon after a name of object member. | 5",
                "{\"a\" | Missing a colon after a name of object member. | 4",
                "{\"a\":} | Invalid value. | 5",
                "{\"a\":1 \"b\":2} | Missing a comma or '}' after an object member. | 7",
                "{\"a\":1] | Missing a comma or '}' after an object member. | 6",
                "[1 2] | Missing a comma or ']' after an array element. | 3",
                "[1} | Missing a comma or ']' after an array element. | 2",
                "[1 | Missing a comma or ']' after an array element. | 2",
                "[1,] | Invalid value. | 3",
                "[,] | Invalid value. | 1",
                "[} | Invalid value. | 1",
                "[tru] | Invalid value. | 4",
                "[nan] | Invalid value. | 2",
                "[falsy] | Invalid value. | 5",
                "[+1] | Invalid value. | 1",
                "[-] | Invalid value. | 2",
                "[-x] | Invalid value. | 2",
                "[.5] | Invalid value. | 1",
                "[01] | Missing a comma or ']' after an array element. | 2",
                "[0x10] | Missing a comma or ']' after an array element. | 2",
                "[1.] | Miss fraction part in number. | 3",
                "[1.e5] | Miss fraction part in number. | 3",
                "[1e] | Miss exponent in number. | 3",
                "[1e+] | Miss exponent in number. | 4",
                "[1e400] | Number too big to be stored in double. | 1",
                "[-1e309] | Number too big to be stored in double. | 1",
                "[1.8e308] | Number too big to be stored in double. | 1",
                "[Infinite] | Invalid value. | 8",
                "[Nan] | Invalid value. | 3",
                "\"abc | Missing a closing quotation mark in string. | 4",
                "\"a\\ | Invalid escape character in string. | 2",
                "\"\\x41\" | Invalid escape character in string. | 1",
                "\"ab\\u12g4\" | Incorrect hex digit after \\u escape in string. | 3",
                "\"ab\\u12 | Incorrect hex digit after \\u escape in string. | 3",
                "[\"\\ud800\"] | The surrogate pair in string is invalid. | 2",
                "[\"\\udc00\"] | The surrogate pair in string is invalid. | 2",
                "[\"\\ud800\\u0041\"] | The surrogate pair in string is invalid. | 2",
                "[\"\\ud800\\n\"] | The surrogate pair in string is invalid. | 2",
            })
    void reportsErrorsAndOffsets(String text, String problem, int offset) {
        assertThatThrownBy(() -> readAll(bytes(text)))
                .isInstanceOf(InferenceException.class)
                .hasMessageStartingWith(
                        "failed to parse the request JSON buffer: %s at %d; expected ", problem, offset);
    }

    @Test
    void refusesControlCharactersInStrings() {
        assertThatThrownBy(() -> readAll(bytes("\"a\nb\""))).hasMessageContaining("Invalid encoding in string. at 2");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "{}",
                "[]",
                " [ [ ] , { } ] ",
                "null",
                "\"x\"",
                "[NaN,Inf,-Inf,Infinity,-Infinity]",
                "[1e-400,0.1e308,-0,0e5,123456789012345678901234567890]",
                "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\ude00\"",
                "\uFEFF{}",
                "{\"a\":{\"b\":[1,{\"c\":[]}]},\"a\":2}",
                "{\"a\":1}\u0000garbage",
            })
    void accepts(String text) {
        readAll(bytes(text));
    }

    @Test
    void acceptsStringsOfAnyBytes() {
        readAll(new byte[] {'"', (byte) 0xFF, (byte) 0xFE, (byte) 0x80, '"'});
    }

    @Test
    void readsAnyDepth() {
        int depth = 100_000;
        readAll(bytes("[".repeat(depth) + "]".repeat(depth)));
        readAll(bytes("{\"a\":".repeat(depth) + "1" + "}".repeat(depth)));

        assertThatThrownBy(() -> readAll(bytes("[".repeat(depth)))).hasMessageContaining("Invalid value. at " + depth);
    }

    @Test
    void distinguishesObjectsFromArraysAtAnyDepth() {
        String open = "[{\"a\":".repeat(70);
        readAll(bytes(open + "1" + "}]".repeat(70)));

        assertThatThrownBy(() -> readAll(bytes(open + "1" + "]}".repeat(70))))
                .hasMessageContaining("Missing a comma or '}' after an object member. at " + (open.length() + 1));
    }

    @Test
    void decodesEscapes() {
        JsonReader json = reader("\"h\\u00e9\\u20AC\\ud83d\\ude00\\u0000\\\"\\/\\n\"");
        json.begin();

        assertThat(json.readString()).isEqualTo("hé€😀\0\"/\n");
    }

    @Test
    void comparesKeysAfterDecoding() {
        JsonReader json = reader("{\"\\u0069nputs\":1,\"inputsX\":2,\"input\":3}");
        json.begin();

        assertThat(json.firstMember()).isTrue();
        assertThat(json.keyIs("inputs")).isTrue();
        json.skipValue();
        assertThat(json.nextMember()).isTrue();
        assertThat(json.keyIs("inputs")).isFalse();
        json.skipValue();
        assertThat(json.nextMember()).isTrue();
        assertThat(json.keyIs("inputs")).isFalse();
        assertThat(json.key()).isEqualTo("input");
        json.skipValue();
        assertThat(json.nextMember()).isFalse();
    }

    @Test
    void everyTruncationIsASyntaxError() {
        String text = "{\"a\":[1.5e3,\"x\\u00e9\\ud83d\\ude00\",{\"b\":null}],\"c\":-Infinity}";
        for (int length = 0; length < text.length(); length++) {
            byte[] cut = bytes(text.substring(0, length));
            assertThatThrownBy(() -> readAll(cut)).isInstanceOf(InferenceException.class);
        }
        readAll(bytes(text));
    }

    private static void readAll(byte[] text) {
        JsonReader json = new JsonReader(MemorySegment.ofArray(text));
        json.begin();
        json.skipValue();
        json.finish();
    }

    private static JsonReader reader(String text) {
        return new JsonReader(MemorySegment.ofArray(bytes(text)));
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
