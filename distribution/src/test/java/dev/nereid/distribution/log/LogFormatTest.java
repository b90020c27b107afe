package dev.nereid.distribution.log;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.InstantSource;
import java.time.OffsetDateTime;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.slf4j.Logger;

final class LogFormatTest {
    private static final Instant TIME = Instant.parse("2026-11-25T22:41:17.123Z");
    private static final String HOSTILE = "a\"b\\c\nd\r\u001b[31m\u2028\u202e\ud800 e=f } 世界";

    private final ByteArrayOutputStream written = new ByteArrayOutputStream();
    private final LogFactory factory = new LogFactory(
            new PrintStream(written, false, StandardCharsets.UTF_8), InstantSource.fixed(TIME), () -> 0, _ -> {});
    private final Logger log = factory.getLogger("dev.nereid.http.Routes");

    @BeforeEach
    void nameTheThread() {
        Thread.currentThread().setName("loop");
    }

    @Test
    void writesJsonObjects() throws IOException {
        factory.setFormat(LogFormat.JSON);
        log.atWarn()
                .addKeyValue("model", "m")
                .addKeyValue("version", 3L)
                .addKeyValue("ready", true)
                .addKeyValue("ratio", Double.NaN)
                .addKeyValue("message", "mine")
                .addKeyValue("model", "again")
                .addKeyValue("model", "and again")
                .setCause(new IllegalStateException("broken"))
                .log("loaded in {} ms", 5);

        Map<String, Object> line = json(lines().getFirst());
        assertThat(lines()).hasSize(1);
        assertThat(OffsetDateTime.parse(String.valueOf(line.remove("time"))).toInstant())
                .isEqualTo(TIME);
        assertThat(String.valueOf(line.remove("exception")))
                .startsWith("java.lang.IllegalStateException: broken\n\tat "
                        + getClass().getName());
        assertThat(line)
                .containsExactly(
                        Map.entry("level", "WARN"),
                        Map.entry("logger", "dev.nereid.http.Routes"),
                        Map.entry("thread", "loop"),
                        Map.entry("message", "loaded in 5 ms"),
                        Map.entry("model", "m"),
                        Map.entry("version", 3L),
                        Map.entry("ready", true),
                        Map.entry("ratio", "NaN"),
                        Map.entry("data.message", "mine"),
                        Map.entry("data.model", "again"),
                        Map.entry("data.data.model", "and again"));
    }

    @Test
    void writesQuotedPairs() {
        factory.setFormat(LogFormat.LOGFMT);
        log.atInfo().addKeyValue("model", "m").addKeyValue("a key", "x=\"y\"\\").log("loaded");

        String line = lines().getFirst();
        assertThat(OffsetDateTime.parse(line.substring("time=".length(), line.indexOf(' ')))
                        .toInstant())
                .isEqualTo(TIME);
        assertThat(line.substring(line.indexOf(' ')))
                .isEqualTo(" level=INFO logger=\"dev.nereid.http.Routes\" thread=\"loop\" msg=\"loaded\" model=\"m\""
                        + " a_key=\"x=\\\"y\\\"\\\\\"");
    }

    @Test
    void writesTheFormOfTheReferenceServer() {
        factory.setFormat(LogFormat.ISO8601);
        log.atError().addKeyValue("model", "m").log("failed");

        assertThat(lines())
                .containsExactly(
                        "2026-11-25T22:41:17Z E " + ProcessHandle.current().pid() + " Routes] model=m failed");
    }

    /** As for models of Python on the reference server: the file and line of the caller in place of the server's. */
    @Test
    void writesThePlaceInTheCodeThatAPluginGives() throws IOException {
        log.atInfo().addKeyValue("file", "a\nb.py").addKeyValue("line", 12).log("loaded");
        factory.setFormat(LogFormat.ISO8601);
        log.atInfo()
                .addKeyValue("model", "m")
                .addKeyValue("file", "a\nb.py")
                .addKeyValue("line", 12)
                .log("loaded");
        log.atInfo().addKeyValue("file", "a file alone").log("removed");
        factory.setFormat(LogFormat.JSON);
        log.atInfo().addKeyValue("file", "b.py").addKeyValue("line", 12).log("loaded");

        String start = "2026-11-25T22:41:17Z I " + ProcessHandle.current().pid();
        assertThat(lines().getFirst()).endsWith(" INFO Routes - file=a\\nb.py line=12 loaded");
        assertThat(lines().get(1)).isEqualTo(start + " a\\nb.py:12] model=m loaded");
        assertThat(lines().get(2)).isEqualTo(start + " Routes] file=a file alone removed");
        assertThat(json(lines().get(3))).containsEntry("file", "b.py").containsEntry("line", 12L);
    }

    /** A text that a client sends stays in its line, and in its value. */
    @ParameterizedTest
    @EnumSource(LogFormat.class)
    void keepsValuesOfClientsInOneLine(LogFormat format) throws IOException {
        factory.setFormat(format);
        log.atInfo().addKeyValue("id", HOSTILE).log("text {}", HOSTILE);
        log.atInfo().addKeyValue("id", "\\".repeat(10_000)).log("\"".repeat(100_000));

        String text = written.toString(StandardCharsets.UTF_8);
        assertThat(text).doesNotContain("\r", "\u001b", "\u2028", "\u202e");
        assertThat(lines()).hasSize(2);
        assertThat(text.length()).isLessThan(60_000);
        if (format == LogFormat.JSON) {
            assertThat(json(lines().getFirst()).get("id")).isEqualTo(HOSTILE);
        }
        if (format == LogFormat.LOGFMT) {
            assertThat(lines()).allMatch(LogFormatTest::isLogfmt);
        }
    }

    /** Time and level, then quoted values in which quotes and backslashes are escaped. */
    private static boolean isLogfmt(String line) {
        return line.matches("time=\\S+ level=[A-Z]+( [A-Za-z0-9_.-]+=\"([^\"\\\\]|\\\\.)*+\")*+");
    }

    private static Map<String, Object> json(String line) throws IOException {
        Map<String, Object> members = new LinkedHashMap<>();
        try (JsonParser parser = new JsonFactory().createParser(line)) {
            assertThat(parser.nextToken()).isEqualTo(JsonToken.START_OBJECT);
            while (parser.nextToken() == JsonToken.FIELD_NAME) {
                String name = parser.currentName();
                JsonToken value = parser.nextToken();
                Object read = switch (value) {
                    case VALUE_TRUE, VALUE_FALSE -> parser.getBooleanValue();
                    case VALUE_NUMBER_INT -> parser.getLongValue();
                    default -> parser.getText();
                };
                assertThat(members.put(name, read)).isNull();
            }
            assertThat(parser.currentToken()).isEqualTo(JsonToken.END_OBJECT);
            assertThat(parser.nextToken()).isNull();
        }
        return members;
    }

    private List<String> lines() {
        return written.toString(StandardCharsets.UTF_8).lines().toList();
    }
}
