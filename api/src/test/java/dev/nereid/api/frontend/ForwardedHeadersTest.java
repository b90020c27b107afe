package dev.nereid.api.frontend;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferenceException;
import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.spi.ErrorCode;
import java.util.Map;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class ForwardedHeadersTest {
    private static final ParameterValue ONE = new ParameterValue.Int(1);

    private final ForwardedHeaders.Builder builder = new ForwardedHeaders.Builder(Pattern.compile("x-|^sequence|^t"));

    private static ParameterValue text(String value) {
        return new ParameterValue.Text(value);
    }

    @Test
    void findsThePatternInNames() {
        assertThat(builder.matches("my-x-y")).isTrue();
        assertThat(builder.matches("X-Y")).isFalse();
        assertThat(builder.matches("my-sequence")).isFalse();
    }

    @Test
    void changesNothingWithoutHeaders() {
        Map<String, ParameterValue> parameters = Map.of("a", ONE);

        assertThat(builder.build()).isSameAs(ForwardedHeaders.NONE);
        assertThat(ForwardedHeaders.NONE.addTo(parameters)).isSameAs(parameters);
    }

    @Test
    void replacesParametersOfTheSameName() {
        builder.add("x-b", "2");
        builder.add("x-c", "3");

        assertThat(builder.build().addTo(Map.of("x-b", ONE, "x-a", ONE)))
                .isEqualTo(Map.of("x-a", ONE, "x-b", text("2"), "x-c", text("3")));
    }

    @Test
    void usesTheLastOfEqualNames() {
        builder.add("x-b", "2");
        builder.add("x-b", "3");

        assertThat(builder.build().addTo(Map.of())).isEqualTo(Map.of("x-b", text("3")));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "sequence_id",
                "sequence_start",
                "sequence_end",
                "priority",
                "timeout",
                "headers",
                "binary_data_output",
                "triton_x"
            })
    void refusesReservedNames(String name) {
        builder.add("x-a", "1");
        builder.add(name, "2");
        builder.add("triton_later", "3");
        ForwardedHeaders headers = builder.build();

        for (int i = 0; i < 2; i++) {
            assertThatThrownBy(() -> headers.addTo(Map.of()))
                    .isInstanceOfSatisfying(
                            InferenceException.class,
                            error -> assertThat(error.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT))
                    .hasMessage("Header '" + name + "' is reserved for Triton usage and cannot be forwarded.");
        }
    }
}
