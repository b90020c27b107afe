package dev.nereid.repository.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferenceException;
import dev.nereid.spi.ErrorCode;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

final class ModelConfigJsonReaderTest {
    /** As the reference's parser, at any depth: messages, numbers, texts and enums. */
    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
            {"instance_group":{"count":2,"kind":"kind_cpu","gpus":3}} | instance_group { count: 2 kind: KIND_CPU gpus: 3 }
            {"instanceGroup":{"profile":"1"}}                         | instance_group { profile: "1" }
            {"input":{"name":"x","data_type":"type_fp32","dims":4}}   | input { name: "x" data_type: TYPE_FP32 dims: 4 }
            {"dynamic_batching":{"preferred_batch_size":"2"}}         | dynamic_batching { preferred_batch_size: 2 }
            {"ensemble_scheduling":{"step":{"input_map":{"a":"b"}}}}  | ensemble_scheduling { step { input_map { key: "a" value: "b" } } }
            {"model_warmup":{"inputs":{"x":{"dims":1}}}}              | model_warmup { inputs { key: "x" value { dims: 1 } } }
            {"batch_input":{"kind":"batch_element_count","target_name":"t"}} | batch_input { target_name: "t" }
            {"instance_group":{}}                                     | instance_group { }
            {"instance_group":null}                                   | ''
            {"instance_group":[]}                                     | ''
            """)
    void takesASingleValueAsTheOnlyElement(String json, String text) {
        assertThat(ModelConfigJsonReader.read(json)).isEqualTo(Configs.config(text));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "{\"instance_group\":5}",
                "{\"instance_group\":\"x\"}",
                "{\"instance_group\":[[{}]]}",
                "{\"instance_group\":{\"nope\":1}}",
                "{\"parameters\":[{}]}",
                "{\"parameters\":\"x\"}",
                "{\"input\":{\"dims\":{}}}",
                "{\"input\":{\"dims\":\"x\"}}",
                "{\"ensemble_scheduling\":{\"max_inflight_requests\":-5}}",
                "{\"ensemble_scheduling\":{\"max_inflight_requests\":\"invalid_value\"}}",
                "{\"ensemble_scheduling\":{\"max_inflight_requests\":12345678901}}",
                "{\"ensemble_scheduling\":{\"max_inflight_requests\":1.5}}"
            })
    void refusesOtherValues(String json) {
        assertThatThrownBy(() -> ModelConfigJsonReader.read(json))
                .isInstanceOfSatisfying(
                        InferenceException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INTERNAL))
                .hasMessageStartingWith("Invalid config override: ");
    }

    @Test
    void takesTheLargestNumberOfRequestsInFlight() {
        assertThat(ModelConfigJsonReader.read("{\"ensemble_scheduling\":{\"max_inflight_requests\":4294967295}}"))
                .isEqualTo(Configs.config("ensemble_scheduling { max_inflight_requests: 4294967295 }"));
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
            {"max_batch_size":0}                 | true
            {"maxBatchSize":"0"}                 | true
            {"max_batch_size":8}                 | true
            {"max_batch_size":null}              | false
            {}                                   | false
            {"metric_tags":{"max_batch_size":"0"}} | false
            """)
    void knowsWhetherABatchSizeIsWritten(String json, boolean isWritten) {
        assertThat(ModelConfigJsonReader.readWritten(json).hasMaxBatchSize()).isEqualTo(isWritten);
    }
}
