package dev.nereid.repository.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class PlaceholdersTest {
    private static final String FINDING = "looks like a template that was not filled in";

    @ParameterizedTest
    @ValueSource(
            strings = {
                "max_batch_size: ${triton_max_batch_size}",
                "max_batch_size: ${}",
                "max_batch_size: {{ max_batch_size }}",
                "max_batch_size: <max batch size>",
                "max_batch_size: 8${zeros}",
                "name: ${name}",
                "input { dims: [ ${size} ] }",
                "input { dims: [ <size>, 3 ] }",
                "input { data_type: TYPE_${type} }",
                "input { data_type: <type> }",
                "instance_group { kind: KIND_${kind} }",
                "${more}",
                "{{ more }}",
            })
    void areNamedWhereTheTextIsNoConfiguration(String text) {
        assertThat(ConfigDiagnosis.ofText("backend: 'x'\n" + text).getFirst().describe())
                .startsWith("2:")
                .endsWith("; " + FINDING);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "max_batch_size: many",
                "max_batch_size: $",
                "max_batch_size: 8 }",
                "input < dims: x >",
                "input { dims: x } # <size>",
                "max_batch: 8",
            })
    void areNotFoundInOtherMistakes(String text) {
        assertThat(ConfigDiagnosis.ofText(text).getFirst().describe()).doesNotContain(FINDING);
    }

    @Test
    void areListedWithTheirFields() {
        assertThat(Placeholders.of(Configs.config("""
                name: "${name}"
                default_model_filename: "model_{{version}}.onnx"
                input < name: "<input>" dims: 1 >
                output { name: "y" label_filename: "a < b > c" }
                parameters { key: "tokenizer_dir" value { string_value: "${tokenizer_dir}" } }
                parameters { key: "pad_token" value { string_value: "<pad>" } }
                parameters { key: "chat_template" value { string_value: "{{ bos_token }}" } }
                metric_tags { key: "<tag>" value: "$HOME" }
                """)))
                .containsExactlyInAnyOrder(
                        "name: '${name}' " + FINDING,
                        "default_model_filename: 'model_{{version}}.onnx' " + FINDING,
                        "input.name: '<input>' " + FINDING,
                        "parameters['tokenizer_dir'].string_value: '${tokenizer_dir}' " + FINDING,
                        "metric_tags: '<tag>' " + FINDING);
    }

    @Test
    void areListedUpToALimit() {
        String field = "input { name: \"${" + "x".repeat(200) + "}\" }\n";

        assertThat(Placeholders.of(Configs.config(field.repeat(1000)))).hasSize(10);
        assertThat(Placeholders.of(Configs.config("name: '" + "${".repeat(100_000) + "'")))
                .isEmpty();
        assertThat(Placeholders.of(Configs.config("name: '" + "<".repeat(100_000) + "'")))
                .isEmpty();
    }

    @Test
    void areNamedInJson() {
        assertThatThrownBy(() -> ModelConfigJsonReader.read("{\"max_batch_size\":\"${size}\"}"))
                .hasMessageEndingWith("; " + FINDING);
        assertThatThrownBy(() -> ModelConfigJsonReader.read("{\"max_batch_size\":${size}}"))
                .hasMessageEndingWith("; " + FINDING);
        assertThatThrownBy(() -> ModelConfigJsonReader.read("{\"max_batch_size\":\"<size>\"}"))
                .hasMessageEndingWith("; " + FINDING);
        assertThatThrownBy(() -> ModelConfigJsonReader.read("{\"max_batch_size\":\"x\"}"))
                .hasMessageNotContaining(FINDING);
    }
}
