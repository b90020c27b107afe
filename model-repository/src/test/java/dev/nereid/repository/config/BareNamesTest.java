package dev.nereid.repository.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferenceException;
import inference.ModelConfig;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

final class BareNamesTest {
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "{a: 1} | {\"a\": 1}",
                "{ a_1 :{b:[{c:2}], d: \"x, y: {z: 1}\"}} | { \"a_1\" :{\"b\":[{\"c\":2}], \"d\": \"x, y: {z: 1}\"}}",
                "{\"a\": \"\\\\\\\", b: 1\", c: 1} | {\"a\": \"\\\\\\\", b: 1\", \"c\": 1}",
            })
    void quotesBareNames(String json, String expected) {
        assertThat(ModelConfigJsonReader.BareNames.quoted(json)).isEqualTo(expected);
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "{", "\"", "{\"a", "{\"a\\", "{a", "{a ", "[a, b]", "{\"a\": b}", "{\"a\": 1}", "a: 1"})
    void leavesOtherTextsAsTheyAre(String json) {
        assertThat(ModelConfigJsonReader.BareNames.quoted(json)).isEqualTo(json);
    }

    @Test
    void aConfigurationMayHaveThem() {
        ModelConfig config = ModelConfigJsonReader.read("""
                { "backend": "x", "sequence_batching": { "iterative_sequence": true,
                  direct: { "max_queue_delay_microseconds": 10000000 } } }""");

        assertThat(config.getSequenceBatching().getIterativeSequence()).isTrue();
        assertThat(config.getSequenceBatching().getDirect().getMaxQueueDelayMicroseconds())
                .isEqualTo(10_000_000);
    }

    @Test
    void anErrorNamesThePlaceInTheGivenText() {
        assertThatThrownBy(() -> ModelConfigJsonReader.read("{ backend: x }"))
                .isInstanceOf(InferenceException.class)
                .hasMessageContaining("not valid JSON at line 1 column");
    }
}
