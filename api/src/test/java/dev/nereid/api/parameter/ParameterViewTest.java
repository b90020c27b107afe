package dev.nereid.api.parameter;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.Parameters;
import java.util.LinkedHashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Tests how a backend reads the parameters of requests and responses. */
final class ParameterViewTest {
    @Test
    void readsEachKindOfValue() {
        Map<String, ParameterValue> values = new LinkedHashMap<>();
        values.put("text", new ParameterValue.Text("t"));
        values.put("integer", new ParameterValue.Int(-1));
        values.put("number", new ParameterValue.Real(0.5));
        values.put("flag", new ParameterValue.Bool(true));
        Parameters parameters = ParameterView.of(values);

        assertThat(parameters.text("text")).contains("t");
        assertThat(parameters.longInteger("integer", -1, 1)).hasValue(-1);
        assertThat(parameters.number("number", 0, 1)).hasValue(0.5);
        assertThat(parameters.flag("flag")).contains(true);
        assertThat(parameters.asMap())
                .containsExactly(
                        Map.entry("text", "t"),
                        Map.entry("integer", -1L),
                        Map.entry("number", 0.5),
                        Map.entry("flag", true));
        assertThat(parameters.asMap()).isUnmodifiable();
        assertThat(parameters.value("Text")).isEmpty();
        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> parameters.integer("integer", 1, 512))
                .withMessage("parameter 'integer': -1 (expected: 1 to 512)");
        assertThatNullPointerException().isThrownBy(() -> parameters.text(null));
    }

    @Test
    void isTheSameForAllRequestsWithoutParameters() {
        assertThat(ParameterView.of(Map.of())).isSameAs(ParameterView.of(new LinkedHashMap<>()));
        assertThat(ParameterView.of(Map.of()).asMap()).isEmpty();
    }
}
