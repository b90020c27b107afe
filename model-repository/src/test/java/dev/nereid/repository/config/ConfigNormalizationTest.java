package dev.nereid.repository.config;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.BackendTraits.PreferredGroup;
import dev.nereid.spi.Device;
import inference.ModelConfig;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.FieldSource;

class ConfigNormalizationTest {
    private static final String LATEST = "version_policy { latest { num_versions: 1 } } ";
    private static final String PINNED =
            "optimization { input_pinned_memory { enable: true } output_pinned_memory { enable: true } } ";

    static final List<Arguments> DEFAULTS = List.of(
            Arguments.of("", LATEST + PINNED),
            Arguments.of("version_policy { all {} }", "version_policy { all {} } " + PINNED),
            Arguments.of(
                    "optimization { input_pinned_memory { enable: false } priority: PRIORITY_MAX }",
                    LATEST + "optimization { priority: PRIORITY_MAX input_pinned_memory { enable: false }"
                            + " output_pinned_memory { enable: true } }"),
            Arguments.of(
                    "max_batch_size: 8 dynamic_batching {}",
                    LATEST + PINNED + "max_batch_size: 8 dynamic_batching { preferred_batch_size: 8 }"),
            Arguments.of(
                    "max_batch_size: 8 dynamic_batching { preferred_batch_size: [ 2, 4 ] }",
                    LATEST + PINNED + "max_batch_size: 8 dynamic_batching { preferred_batch_size: [ 2, 4 ] }"),
            Arguments.of("dynamic_batching {}", LATEST + PINNED + "dynamic_batching {}"),
            Arguments.of(
                    "max_batch_size: 8 sequence_batching { oldest {} }",
                    LATEST + PINNED + "max_batch_size: 8 sequence_batching {"
                            + " max_sequence_idle_microseconds: 1000000 oldest { preferred_batch_size: 8 } }"),
            Arguments.of(
                    "sequence_batching { max_sequence_idle_microseconds: 5 direct {} }",
                    LATEST + PINNED + "sequence_batching { max_sequence_idle_microseconds: 5 direct {} }"),
            Arguments.of("ensemble_scheduling {}", LATEST + "ensemble_scheduling {}"));

    @ParameterizedTest
    @FieldSource("DEFAULTS")
    void fillsInDefaultsOnce(String text, String normalized) {
        ModelConfig once = ConfigNormalization.normalize(Configs.config(text));

        assertThat(once).isEqualTo(Configs.config(normalized));
        assertThat(ConfigNormalization.normalize(once)).isEqualTo(once);
    }

    private static final BackendTraits PLAIN = BackendTraits.DEFAULT;
    private static final BackendTraits GPU_FIRST =
            PLAIN.withPreferredGroups(PreferredGroup.of(Device.Kind.GPU, 3), PreferredGroup.of(Device.Kind.CPU, 5));
    private static final BackendTraits MODEL = PLAIN.withPreferredGroups(PreferredGroup.of(Device.Kind.MODEL, 1));
    private static final BackendTraits CPU_ALONE = PLAIN.withPreferredGroups(PreferredGroup.of(Device.Kind.CPU, 2));
    private static final List<Integer> NONE = List.of();
    private static final List<Integer> TWO = List.of(0, 1);

    static final List<Arguments> GROUPS = List.of(
            Arguments.of("", PLAIN, NONE, "{ name: 'm' kind: KIND_CPU count: 1 }"),
            Arguments.of("", PLAIN, TWO, "{ name: 'm' kind: KIND_GPU count: 1 gpus: [ 0, 1 ] }"),
            Arguments.of("backend: 'onnxruntime'", PLAIN, NONE, "{ name: 'm' kind: KIND_CPU count: 2 }"),
            Arguments.of("backend: 'tensorflow'", PLAIN, NONE, "{ name: 'm' kind: KIND_CPU count: 2 }"),
            Arguments.of("backend: 'onnxruntime'", PLAIN, TWO, "{ name: 'm' kind: KIND_GPU count: 1 gpus: [ 0, 1 ] }"),
            Arguments.of("", GPU_FIRST, NONE, "{ name: 'm' kind: KIND_CPU count: 5 }"),
            Arguments.of("", GPU_FIRST, TWO, "{ name: 'm' kind: KIND_GPU count: 3 gpus: [ 0, 1 ] }"),
            Arguments.of("", CPU_ALONE, TWO, "{ name: 'm' kind: KIND_CPU count: 2 }"),
            Arguments.of("instance_group { count: 3 }", CPU_ALONE, TWO, "{ name: 'm_0' kind: KIND_CPU count: 3 }"),
            Arguments.of(
                    "instance_group { kind: KIND_AUTO }", CPU_ALONE, TWO, "{ name: 'm_0' kind: KIND_CPU count: 2 }"),
            Arguments.of(
                    "instance_group { kind: KIND_GPU }",
                    CPU_ALONE,
                    TWO,
                    "{ name: 'm_0' kind: KIND_GPU count: 1 gpus: [ 0, 1 ] }"),
            Arguments.of(
                    "instance_group { count: 3 }",
                    GPU_FIRST,
                    TWO,
                    "{ name: 'm_0' kind: KIND_GPU count: 3 gpus: [ 0, 1 ] }"),
            Arguments.of("", MODEL, TWO, "{ name: 'm' kind: KIND_MODEL count: 1 }"),
            Arguments.of(
                    "instance_group [ {}, { name: 'b' }, { count: 4 } ]",
                    PLAIN,
                    NONE,
                    "{ name: 'm_0' kind: KIND_CPU count: 1 }, { name: 'b' kind: KIND_CPU count: 1 },"
                            + " { name: 'm_2' kind: KIND_CPU count: 4 }"),
            Arguments.of(
                    "instance_group { kind: KIND_CPU }", GPU_FIRST, TWO, "{ name: 'm_0' kind: KIND_CPU count: 5 }"),
            Arguments.of(
                    "instance_group { kind: KIND_GPU gpus: 1 }",
                    GPU_FIRST,
                    TWO,
                    "{ name: 'm_0' kind: KIND_GPU count: 3 gpus: 1 }"),
            Arguments.of(
                    "instance_group { gpus: [ 0, 7 ] }",
                    PLAIN,
                    TWO,
                    "{ name: 'm_0' kind: KIND_CPU count: 1 gpus: [ 0, 7 ] }"),
            Arguments.of(
                    "backend: 'onnxruntime' instance_group { kind: KIND_CPU count: 1 }",
                    PLAIN,
                    NONE,
                    "{ name: 'm_0' kind: KIND_CPU count: 1 }"));

    @ParameterizedTest
    @FieldSource("GROUPS")
    void fillsInInstanceGroups(String text, BackendTraits traits, List<Integer> gpus, String groups) {
        ModelConfig normalized = ConfigNormalization.instanceGroups(Configs.config("name: 'm' " + text), traits, gpus);

        assertThat(normalized.getInstanceGroupList())
                .isEqualTo(Configs.config("instance_group [ " + groups + " ]").getInstanceGroupList());
        assertThat(ConfigNormalization.instanceGroups(normalized, traits, gpus)).isEqualTo(normalized);
    }

    @Test
    void givesEnsemblesNoInstances() {
        ModelConfig ensemble = Configs.config("name: 'm' ensemble_scheduling {}");

        assertThat(ConfigNormalization.instanceGroups(ensemble, PLAIN, NONE)).isEqualTo(ensemble);
    }
}
