package dev.nereid.repository.config;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.util.JsonFormat;
import inference.ModelConfig;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.FieldSource;

class ModelConfigJsonTest {
    private static final String EVERYTHING = """
            name: "m" platform: "p" backend: "b" runtime: "r"
            version_policy { specific { versions: [ 1, 9223372036854775807 ] } }
            max_batch_size: 8
            input {
              name: "x" data_type: TYPE_STRING dims: [ -1, 1099511627776 ] reshape { shape: [ 1, -1 ] } optional: true
            }
            output { name: "y" data_type: TYPE_BF16 dims: 1 label_filename: "l.txt" }
            batch_input { kind: BATCH_ITEM_SHAPE target_name: "t" data_type: TYPE_FP32 source_input: "x" }
            batch_output { target_name: "y" source_input: "x" }
            optimization {
              graph { level: -1 } priority: PRIORITY_MAX
              cuda {
                graphs: true
                graph_spec {
                  batch_size: 2
                  input { key: "x" value { dim: [ 3, 4 ] } }
                  graph_lower_bound { batch_size: 1 input { key: "x" value { dim: 1 } } }
                }
              }
              execution_accelerators {
                gpu_execution_accelerator { name: "tensorrt" parameters { key: "precision_mode" value: "FP16" } }
              }
              gather_kernel_buffer_threshold: 4294967295
            }
            dynamic_batching {
              max_queue_delay_microseconds: 18446744073709551615 priority_levels: 2 default_priority_level: 1
              default_queue_policy { default_timeout_microseconds: 7 }
              priority_queue_policy { key: 2 value { timeout_action: DELAY default_timeout_microseconds: 5 } }
            }
            instance_group {
              kind: KIND_GPU gpus: [ 0, 1 ] secondary_devices { device_id: 3 }
              rate_limiter { resources { name: "R" global: true count: 2 } priority: 4294967295 }
            }
            cc_model_filenames { key: "7.5" value: "t4.plan" }
            metric_tags { key: "a" value: "b" } metric_tags { key: "c" value: "d" }
            parameters { key: "k" value { string_value: "v" } }
            model_warmup {
              name: "w" batch_size: 1
              inputs { key: "x" value { data_type: TYPE_FP32 dims: [ 2, 3 ] zero_data: false } }
            }
            model_operations { op_library_filename: "lib.so" }
            model_transaction_policy { decoupled: true }
            model_repository_agents { agents { name: "checksum" parameters { key: "k" value: "v" } } }
            response_cache { enable: true }
            model_metrics {
              metric_control {
                metric_identifier { family: "f" } histogram_options { buckets: [ 0.1, 1, 2.5, 1e9 ] }
              }
            }
            """;

    static final List<Arguments> PARTS = List.of(
            Arguments.of(
                    "version_policy { specific { versions: [ 1, 9223372036854775807 ] } }",
                    "\"version_policy\":{\"specific\":{\"versions\":[1,9223372036854775807]}}"),
            Arguments.of("version_policy { all {} }", "\"version_policy\":{\"all\":{}}"),
            Arguments.of(
                    "input { dims: [ -1, 4 ] reshape { shape: 4 } }", "\"dims\":[-1,4],\"reshape\":{\"shape\":[4]}"),
            Arguments.of(
                    "dynamic_batching { max_queue_delay_microseconds: 18446744073709551615 }",
                    "\"max_queue_delay_microseconds\":18446744073709551615,"),
            Arguments.of(
                    "dynamic_batching { priority_queue_policy { key: 2 value { default_timeout_microseconds: 5 } } }",
                    "\"priority_queue_policy\":{\"2\":{\"timeout_action\":\"REJECT\","
                            + "\"default_timeout_microseconds\":5,"),
            Arguments.of(
                    "sequence_batching { direct { max_queue_delay_microseconds: 3 minimum_slot_utilization: 0.1 } }",
                    "\"sequence_batching\":{\"direct\":{\"max_queue_delay_microseconds\":3,"
                            + "\"minimum_slot_utilization\":0.1},\"max_sequence_idle_microseconds\":0,"),
            Arguments.of(
                    "sequence_batching { direct { minimum_slot_utilization: 1 } }", "\"minimum_slot_utilization\":1}"),
            Arguments.of(
                    "sequence_batching { state { dims: 5 initial_state { dims: 6 zero_data: true } } }",
                    "\"dims\":[5],\"initial_state\":[{\"data_type\":\"TYPE_INVALID\",\"dims\":[\"6\"],"
                            + "\"zero_data\":true,"),
            Arguments.of("ensemble_scheduling { step { model_version: -1 } }", "\"model_version\":-1,"),
            Arguments.of("model_warmup { inputs { key: 'x' value { dims: 2 } } }", "\"dims\":[2]"),
            Arguments.of("instance_group { secondary_devices { device_id: 3 } }", "\"device_id\":\"3\""),
            Arguments.of(
                    "optimization { cuda { graph_spec { input { key: 'x' value { dim: 3 } } } } }",
                    "\"input\":{\"x\":{\"dim\":[\"3\"]}}"),
            Arguments.of("input { data_type: 99 }", "\"data_type\":99,"),
            Arguments.of(
                    "model_metrics { metric_control { histogram_options { buckets: [ 0.1, 1, 2.5, nan ] } } }",
                    "\"buckets\":[0.1,1,2.5,\"NaN\"]"),
            Arguments.of(
                    "name: '\\\"\\\\/\\n\\t\\r\\b\\f\\001\u00e9<'",
                    "{\"name\":\"\\\"\\\\/\\n\\t\\r\\b\\f\\u0001\u00e9<\","));

    @ParameterizedTest
    @FieldSource("PARTS")
    void printsAsTheReference(String text, String json) {
        assertThat(ModelConfigJson.write(Configs.config(text))).contains(json);
    }

    @Test
    void printsDefaultsInTheOrderOfDeclaration() {
        assertThat(ModelConfigJson.write(ModelConfig.getDefaultInstance()))
                .isEqualTo("{\"name\":\"\",\"platform\":\"\",\"backend\":\"\",\"runtime\":\"\",\"max_batch_size\":0,"
                        + "\"input\":[],\"output\":[],\"batch_input\":[],\"batch_output\":[],\"instance_group\":[],"
                        + "\"default_model_filename\":\"\",\"cc_model_filenames\":{},\"metric_tags\":{},"
                        + "\"parameters\":{},\"model_warmup\":[]}");
    }

    @Test
    void losesNothing() throws InvalidProtocolBufferException {
        ModelConfig config = Configs.config(EVERYTHING);
        ModelConfig.Builder again = ModelConfig.newBuilder();

        JsonFormat.parser().merge(ModelConfigJson.write(config), again);

        assertThat(again.build()).isEqualTo(config);
    }
}
