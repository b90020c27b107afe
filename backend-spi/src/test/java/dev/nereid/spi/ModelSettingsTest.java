package dev.nereid.spi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class ModelSettingsTest {
    private static final ModelSettings SETTINGS = settings("""
            {"name":"m","max_batch_size":8, "input" : [{"name":"a","dims":[-1,2]},{"name":"b","dims":[ ]}],
             "instance_group":[{"count":2,"profile":["0","2"]},{"count":1,"profile":["1"],"passive":true}],
             "optimization":{"graph":{"level":-1},"cuda":null,"gather_kernel_buffer_threshold":1.5e3},
             "cc_model_filenames":{"9.0":"h.plan","8.0":"a.plan"},"empty":{},"text":"\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\u0001"}
            """);

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "name | m",
                "max_batch_size | 8",
                "optimization.graph.level | -1",
                "optimization.gather_kernel_buffer_threshold | 1.5e3",
                "input.1.name | b",
                "input.0.dims.0 | -1",
                "instance_group.1.passive | true",
                "input.0.dims | [-1,2]",
                "optimization.graph | {\"level\":-1}",
                "empty | {}",
            })
    void readsFieldsByTheirPaths(String path, String expected) {
        assertThat(SETTINGS.value(path)).hasValue(expected);
    }

    @ParameterizedTest
    @CsvSource({
        "optimization.cuda",
        "optimization.priority",
        "name.first",
        "input.2.name",
        "input.-1.name",
        "input.name",
        "''",
        "optimization.",
        "cc_model_filenames.9.0",
    })
    void hasNoValueOfFieldsThatAreNotThere(String path) {
        assertThat(SETTINGS.value(path)).isEmpty();
        assertThat(SETTINGS.entries(path)).isEmpty();
    }

    @Test
    void readsTheEscapesOfTexts() {
        assertThat(SETTINGS.value("text")).hasValue("\"\\/\b\f\n\r\té\u0001");
    }

    @Test
    void readsLists() {
        assertThat(SETTINGS.values("input.0.dims")).containsExactly("-1", "2");
        assertThat(SETTINGS.values("input.1.dims")).isEmpty();
        assertThat(SETTINGS.values("input.name")).containsExactly("a", "b");
        assertThat(SETTINGS.values("instance_group.profile")).containsExactly("0", "2", "1");
        assertThat(SETTINGS.values("instance_group.1.profile")).containsExactly("1");
        assertThat(SETTINGS.values("instance_group.passive")).containsExactly("true");
        assertThat(SETTINGS.values("name")).as("a single value").containsExactly("m");
        assertThat(SETTINGS.values("output.name")).isEmpty();
        assertThat(SETTINGS.values("input"))
                .containsExactly("{\"name\":\"a\",\"dims\":[-1,2]}", "{\"name\":\"b\",\"dims\":[ ]}");
    }

    @Test
    void readsMapsAndMessages() {
        assertThat(SETTINGS.entries("cc_model_filenames"))
                .containsExactly(Map.entry("9.0", "h.plan"), Map.entry("8.0", "a.plan"));
        assertThat(SETTINGS.entries("input.0")).containsExactly(Map.entry("name", "a"), Map.entry("dims", "[-1,2]"));
        assertThat(SETTINGS.entries("input")).as("a list").isEmpty();
        assertThatThrownBy(() -> SETTINGS.entries("input.0").clear()).isInstanceOf(UnsupportedOperationException.class);
    }

    @Test
    void hasNoValuesWithoutAConfiguration() {
        ModelSettings settings = ModelSettings.builder("m", 1).build();

        assertThat(settings.value("name")).isEmpty();
        assertThat(settings.values("input")).isEmpty();
        assertThat(settings.entries("parameters")).isEmpty();
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "`` | json: the end at character 1 (expected: more)",
                "{\"a\" 1} | json: '1' at character 6 (expected: ':')",
                "{\"a\":1 \"b\"} | json: '\"' at character 8 (expected: ',' or '}')",
                "[1 | json: the end at character 3 (expected: ',' or ']')",
                "{\"a\":\"b | json: the end at character 8 (expected: more)",
                "{\"a\":\"\\u12 | json: '1' at character 9 (expected: four digits)",
                "{a:1} | json: 'a' at character 2 (expected: '\"')",
                "{\"a\":} | json: '}' at character 6 (expected: a value)",
                "{} {} | json: '{' at character 4 (expected: the end)",
            })
    void saysWhereAConfigurationOfATestIsWrong(String json, String message) {
        ModelSettings settings = settings(json);

        assertThatThrownBy(() -> settings.value("a"))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage(message);
    }

    private static ModelSettings settings(String json) {
        return ModelSettings.builder("m", 1).json(json).build();
    }
}
