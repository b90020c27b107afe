package dev.nereid.repository;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferenceException;
import dev.nereid.repository.config.ModelConfigReader;
import inference.ModelConfig;
import java.util.List;
import java.util.NavigableSet;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class VersionPolicyTest {
    @Test
    void takesTheHighestByDefault() {
        assertThat(select("", 1L, 3L, 20L)).containsExactly(20L);
    }

    @Test
    void takesAsManyOfTheHighestAsConfigured() {
        assertThat(select("version_policy { latest { num_versions: 2 } }", 1L, 3L, 20L))
                .containsExactly(3L, 20L);
        assertThat(select("version_policy { latest { num_versions: 4000000000 } }", 1L, 3L, 20L))
                .containsExactly(1L, 3L, 20L);
    }

    @Test
    void takesAll() {
        assertThat(select("version_policy { all {} }", 1L, 3L, 20L)).containsExactly(1L, 3L, 20L);
    }

    @Test
    void takesThoseThatAreNamedAndExist() {
        assertThat(select("version_policy { specific { versions: [20, 1, 7] } }", 1L, 3L, 20L))
                .containsExactly(1L, 20L);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "version_policy { specific { versions: [7] } }",
                "version_policy { specific {} }",
                "version_policy { latest { num_versions: 0 } }"
            })
    void refusesAPolicyThatLeavesNothing(String policy) {
        assertThatThrownBy(() -> select(policy, 1L, 3L, 20L))
                .isInstanceOf(InferenceException.class)
                .hasMessage("at least one version must be available under the version policy of model 'm'");
    }

    @Test
    void refusesAModelWithoutVersions() {
        assertThatThrownBy(() -> select("version_policy { all {} }")).isInstanceOf(InferenceException.class);
    }

    private static NavigableSet<Long> select(String policy, Long... existing) {
        ModelConfig config = ModelConfigReader.parse("m/config.pbtxt", "name: \"m\" " + policy);
        return VersionPolicy.select(config, new TreeSet<>(List.of(existing)));
    }
}
