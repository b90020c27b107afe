package dev.nereid.api.parameter;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.Parameters;
import java.util.Map;
import org.junit.jupiter.api.Test;

class ModelParametersTest {
    private final ModelParameters parameters =
            ModelParameters.of(Map.of("size", "5", "name", "x", "session.a", "1", "session.b", "2", "other", ""));

    @Test
    void recordsEachRead() {
        assertThat(parameters.integer("size", 1, 9)).hasValue(5);
        assertThat(parameters.text("missing")).isEmpty();
        assertThat(parameters.under("session.").text("session.a")).contains("1");

        assertThat(parameters.unread()).containsExactly("name", "other");
        assertThat(parameters.read()).containsExactly("missing", "session.", "size");
        assertThat(parameters.missing()).containsExactly("missing");
    }

    @Test
    void recordsAReadThatFails() {
        assertThatThrownBy(() -> parameters.integer("name", 1, 9))
                .hasMessage("parameter 'name': x (expected: an integer, 1 to 9)");
        assertThatThrownBy(() -> parameters.required("encoder")).isInstanceOf(BackendException.class);

        assertThat(parameters.unread()).doesNotContain("name");
        assertThat(parameters.read()).containsExactly("encoder", "name");
    }

    @Test
    void recordsAllWithTheMap() {
        assertThat(parameters.asMap()).hasSize(5);

        assertThat(parameters.unread()).isEmpty();
        assertThat(parameters.read()).isEmpty();
    }

    @Test
    void recordsNothingAfterTheEnd() {
        parameters.endRecording();
        parameters.text("size");
        parameters.asMap();
        parameters.under("session.");

        assertThat(parameters.unread()).hasSize(5);
        assertThat(parameters.read()).isEmpty();
    }

    @Test
    void recordsALimitedNumberOfNames() {
        for (int i = 0; i < 10_000; i++) {
            parameters.text("name" + i);
            parameters.under("prefix" + i);
        }
        parameters.text("size");

        assertThat(parameters.read()).hasSizeLessThan(2_100);
        assertThat(parameters.unread()).doesNotContain("size");
    }

    @Test
    void hasMoreParameters() {
        parameters.text("size");
        ModelParameters more = parameters.with(Map.of("size", "6", "new", "7"));

        assertThat(more.unread()).contains("size", "new", "name");
        assertThat(more.text("size")).contains("6");
        assertThat(parameters.text("new")).isEmpty();
    }

    @Test
    void namesTheFlagOfSettings() {
        Parameters settings = BackendParameters.of("B", Map.of("max_tokens", "0", "x.a", "b"));

        assertThatThrownBy(() -> settings.integer("max_tokens", 1, 512))
                .hasMessage("--backend-config=B,max_tokens: 0 (expected: 1 to 512)");
        assertThatThrownBy(() -> settings.required("name"))
                .hasMessage("--backend-config=B,name: missing (expected: a value for it)");
        assertThatThrownBy(() -> settings.under("x.").flag("x.a"))
                .hasMessage("--backend-config=B,x.a: b (expected: true or false)");
        assertThat(settings.asMap()).containsOnlyKeys("max_tokens", "x.a");
    }
}
