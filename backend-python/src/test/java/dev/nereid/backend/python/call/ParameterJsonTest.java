package dev.nereid.backend.python.call;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.Parameters;
import java.util.LinkedHashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;

class ParameterJsonTest {
    @Test
    void writesAllKindsWithoutBlanks() {
        Map<String, Object> values = new LinkedHashMap<>();
        values.put("text", "a\"b\\c\n\u0001ä😀");
        values.put("integer", Long.MIN_VALUE);
        values.put("number", 0.25);
        values.put("none", Double.NaN);
        values.put("flag", true);

        assertThat(ParameterJson.write(Parameters.of(values)))
                .isEqualTo("{\"text\":\"a\\\"b\\\\c\\u000a\\u0001ä😀\",\"integer\":-9223372036854775808,"
                        + "\"number\":0.25,\"none\":NaN,\"flag\":true}");
    }

    @Test
    void writesNoParametersAsAnEmptyText() {
        assertThat(ParameterJson.write(Parameters.of(Map.of()))).isEmpty();
    }
}
