package dev.nereid.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;

class ModelRefTest {
    @Test
    void parsesVersions() {
        assertThat(ModelRef.parse("m", "")).isEqualTo(ModelRef.latest("m"));
        assertThat(ModelRef.parse("m", "01")).isEqualTo(new ModelRef("m", 1));
        assertThatThrownBy(() -> ModelRef.parse("m", "99999999999999999999"))
                .hasMessageStartingWith("failed to get model version from specified version string");
    }
}
