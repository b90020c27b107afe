package dev.nereid.plugin;

import static org.assertj.core.api.Assertions.assertThatCode;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class PluginLoggerTest {
    private final PluginLogger log = new PluginLogger("b", "m");

    @ParameterizedTest
    @ValueSource(strings = {"loaded {model}", "{0", "{0,date}", "{0,none}", "{-1}", "{99999999999}"})
    void logsAMessageWhoseFormatIsWrong(String format) {
        assertThatCode(() -> log.log(System.Logger.Level.ERROR, format, "a value"))
                .doesNotThrowAnyException();
    }

    @Test
    void logsAValueThatThrows() {
        Object value = new Object() {
            @Override
            public String toString() {
                throw new IllegalStateException("of a test");
            }
        };

        assertThatCode(() -> log.log(System.Logger.Level.ERROR, "{0}", value)).doesNotThrowAnyException();
    }
}
