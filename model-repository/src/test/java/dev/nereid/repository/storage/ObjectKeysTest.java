package dev.nereid.repository.storage;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.CharRange;
import net.jqwik.api.constraints.StringLength;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class ObjectKeysTest {
    @ParameterizedTest
    @ValueSource(
            strings = {
                "m/1/model.onnx",
                "m/",
                "m/1/",
                "m/a b/c+d.txt",
                "m/..a/...",
                "m/größe/模型.onnx",
                "m/%2e%2e/x",
                "m/\uD83D\uDE00/x",
                "m/C:/x",
            })
    void acceptsPlainNames(String key) {
        assertThat(ObjectKeys.violation(key)).isEmpty();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "m/../../etc/passwd",
                "..",
                "../m/x",
                "m/./x",
                "/etc/passwd",
                "//x",
                "m//x",
                "m/1//",
                "/",
                "m/..\\..\\x",
                "m/..",
                "m/../",
                "m/a\u0000b",
                "m/a\nb",
                "m/a\tb",
                "m/a\u007fb",
                "m/\uD800",
            })
    void refusesKeysThatAreNoPlainPaths(String key) {
        assertThat(ObjectKeys.violation(key)).isPresent();
    }

    @Test
    void refusesLongKeysAndNames() {
        assertThat(ObjectKeys.violation("m/" + "x".repeat(255))).isEmpty();
        assertThat(ObjectKeys.violation("m/" + "x".repeat(256))).isPresent();
        assertThat(ObjectKeys.violation("m/" + "ö".repeat(128))).as("256 bytes").isPresent();
        assertThat(ObjectKeys.violation("m/".repeat(33) + "x")).isPresent();
        assertThat(ObjectKeys.violation("x".repeat(200).concat("/").repeat(6))).isPresent();
    }

    /** Whatever is accepted stays below the directory that it is resolved in. */
    @Property
    void acceptedKeysStayInside(
            @ForAll @StringLength(min = 1, max = 12) @CharRange(from = '.', to = '/') String dots,
            @ForAll @StringLength(max = 4) String text) {
        for (String key : new String[] {dots + text, text + dots, text + "/" + dots + "/" + text}) {
            if (ObjectKeys.violation(key).isEmpty()) {
                Path base = Path.of("/base/copy");
                Path resolved = base.resolve(key);
                assertThat(resolved.normalize())
                        .isEqualTo(resolved)
                        .startsWithRaw(base)
                        .isNotEqualTo(base);
            }
        }
    }

    @Test
    void printsKeysOnOneLine() {
        assertThat(ObjectKeys.printable("a\nb/\u2028c\u202ed")).isEqualTo("a?b/?c?d");
        assertThat(ObjectKeys.printable("x".repeat(10_000))).hasSize(256);
    }
}
