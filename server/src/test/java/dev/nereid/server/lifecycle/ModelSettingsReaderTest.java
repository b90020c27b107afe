package dev.nereid.server.lifecycle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelMetadata;
import dev.nereid.repository.config.ConfigNormalization;
import dev.nereid.repository.config.Configs;
import dev.nereid.repository.config.ModelConfigJson;
import dev.nereid.repository.config.TensorSpecs;
import dev.nereid.scheduler.BatchingPolicy;
import dev.nereid.scheduler.queue.PriorityPolicy;
import dev.nereid.scheduler.queue.QueuePolicy;
import dev.nereid.spi.BatchInput;
import dev.nereid.spi.BatchOutput;
import dev.nereid.spi.ControlInput;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.SequenceBatching;
import dev.nereid.spi.Shape;
import dev.nereid.spi.StateSpec;
import dev.nereid.spi.TensorSpec;
import inference.ModelConfig;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

class ModelSettingsReaderTest {
    private static final ModelConfig CONFIG = Configs.config("""
            name: "m" backend: "b" max_batch_size: 8 default_model_filename: "model.x"
            input [
              { name: "x" data_type: TYPE_STRING dims: [ -1 ] reshape { shape: [ 1, -1 ] } optional: true },
              { name: "r" data_type: TYPE_INT8 dims: 2 allow_ragged_batch: true },
              { name: "s" data_type: TYPE_INT32 dims: 2 is_shape_tensor: true is_non_linear_format_io: true }
            ]
            output { name: "y" data_type: TYPE_FP16 dims: [ 1 ] reshape { shape: [] } }
            model_transaction_policy { decoupled: true }
            parameters { key: "k" value { string_value: "v" } }
            optimization {
              graph { level: 0 }
              execution_accelerators {
                gpu_execution_accelerator { name: "tensorrt" parameters { key: "a" value: "b" } }
                cpu_execution_accelerator { name: "openvino" }
              }
            }
            model_operations { op_library_filename: [ "one.so", "two.so" ] }
            """);

    @Test
    void givesBackendsWhatTheyNeed() {
        ModelSettings settings = ModelSettingsReader.settings(CONFIG, 3);

        assertThat(settings.name()).isEqualTo("m");
        assertThat(settings.version()).isEqualTo(3);
        assertThat(settings.maxBatchSize()).isEqualTo(8);
        assertThat(settings.decoupled()).isTrue();
        assertThat(settings.modelFilename()).isEqualTo("model.x");
        assertThat(settings.inputs()).isEqualTo(inputs());
        assertThat(settings.outputs())
                .containsExactly(TensorSpec.of("y", DataType.FP16, Shape.of(1)).withReshape(Shape.SCALAR));
        assertThat(ModelSettingsReader.parameters(CONFIG).asMap()).containsExactly(Map.entry("k", "v"));
        assertThat(settings.value("optimization.graph.level")).hasValue("0");
        assertThat(settings.values("optimization.execution_accelerators.gpu_execution_accelerator.name"))
                .containsExactly("tensorrt");
        assertThat(settings.entries("optimization.execution_accelerators.gpu_execution_accelerator.0.parameters"))
                .containsExactly(Map.entry("a", "b"));
        assertThat(settings.value("optimization.execution_accelerators.cpu_execution_accelerator.0.name"))
                .hasValue("openvino");
        assertThat(settings.values("model_operations.op_library_filename")).containsExactly("one.so", "two.so");
        assertThat(settings.json()).isEqualTo(ModelConfigJson.write(CONFIG));
    }

    @Test
    void describesTheBatchingOfSequences() {
        SequenceBatching batching = sequenceBatching("""
                max_sequence_idle_microseconds: 10000000 oldest { max_candidate_sequences: 4 } iterative_sequence: true
                control_input [
                  { name: "START" control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } },
                  { name: "READY" control { kind: CONTROL_SEQUENCE_READY fp32_false_true: [ 0, 1 ] } },
                  { name: "END" control { kind: CONTROL_SEQUENCE_END bool_false_true: [ false, true ] } },
                  { name: "ID" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_STRING } }
                ]
                state [
                  { input_name: "a" output_name: "b" data_type: TYPE_FP32 dims: [ -1, 2 ] },
                  { input_name: "c" output_name: "d" data_type: TYPE_INT8 dims: 1 use_same_buffer_for_input_output: true },
                  { input_name: "e" output_name: "f" data_type: TYPE_STRING dims: 1 use_growable_memory: true }
                ]""");

        assertThat(batching.strategy()).isEqualTo(SequenceBatching.Strategy.OLDEST);
        assertThat(batching.iterative()).isTrue();
        assertThat(batching.maxIdle()).isEqualTo(Duration.ofSeconds(10));
        assertThat(batching.controls())
                .containsExactly(
                        new ControlInput(ControlInput.Kind.SEQUENCE_START, "START", DataType.INT32),
                        new ControlInput(ControlInput.Kind.SEQUENCE_READY, "READY", DataType.FP32),
                        new ControlInput(ControlInput.Kind.SEQUENCE_END, "END", DataType.BOOL),
                        new ControlInput(ControlInput.Kind.SEQUENCE_CORRID, "ID", DataType.BYTES));
        assertThat(batching.states())
                .containsExactly(
                        StateSpec.of("a", "b", DataType.FP32, Shape.of(-1, 2)),
                        StateSpec.of("c", "d", DataType.INT8, Shape.of(1)).withSameBuffer(),
                        StateSpec.of("e", "f", DataType.BYTES, Shape.of(1)).withGrowableMemory());
    }

    @Test
    void describesThePlainBatchingOfSequences() {
        SequenceBatching batching = sequenceBatching("");

        assertThat(batching.strategy()).isEqualTo(SequenceBatching.Strategy.DIRECT);
        assertThat(batching.iterative()).isFalse();
        assertThat(batching.maxIdle()).as("the default").isEqualTo(Duration.ofSeconds(1));
        assertThat(batching.controls()).isEmpty();
        assertThat(batching.states()).isEmpty();
        assertThat(ModelSettingsReader.settings(CONFIG, 1).sequenceBatching()).isEmpty();
        assertThat(sequenceBatching("max_sequence_idle_microseconds: 18446744073709551615")
                        .maxIdle())
                .isEqualTo(Duration.ofNanos(Long.MAX_VALUE));
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', quoteCharacter = '`', textBlock = """
            control_input { control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } } | sequence batching control tensor must have a name for m
            control_input { name: "c" control { kind: CONTROL_SEQUENCE_START } } | sequence batching must specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' for CONTROL_SEQUENCE_START for m
            control_input { name: "c" control { kind: CONTROL_SEQUENCE_END int32_false_true: [ 0, 1 ] fp32_false_true: [ 0, 1 ] } } | sequence batching specifies more than one from 'int32_false_true', 'fp32_false_true' and 'bool_false_true' for CONTROL_SEQUENCE_END for m
            control_input { name: "c" control { kind: CONTROL_SEQUENCE_READY bool_false_true: true } } | sequence batching control 'bool_false_true' must have exactly 2 entries for CONTROL_SEQUENCE_READY for m
            control_input { name: "c" control { kind: CONTROL_SEQUENCE_CORRID fp32_false_true: [ 0, 1 ] } } | sequence batching must not specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' for CONTROL_SEQUENCE_CORRID for m
            control_input { name: "c" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_FP32 } } | unexpected data type for control CONTROL_SEQUENCE_CORRID for m. Allowed data types are TYPE_UINT64, TYPE_INT64, TYPE_UINT32, TYPE_INT32 and TYPE_STRING
            state { input_name: "a" output_name: "b" dims: 1 } | tensor 'a' must specify 'data_type'
            """)
    void refusesWrongTensorsOfSequences(String batching, String message) {
        assertThatThrownBy(() -> sequenceBatching(batching))
                .isInstanceOf(InferenceException.class)
                .hasMessage(message);
    }

    private static SequenceBatching sequenceBatching(String text) {
        ModelConfig config = ConfigNormalization.normalize(
                Configs.config("name: \"m\" backend: \"b\" sequence_batching { " + text + " }"));
        return ModelSettingsReader.settings(config, 1).sequenceBatching().orElseThrow();
    }

    private static List<TensorSpec> inputs() {
        return List.of(
                TensorSpec.of("x", DataType.BYTES, Shape.of(-1))
                        .withReshape(Shape.of(1, -1))
                        .with(TensorSpec.Trait.OPTIONAL),
                TensorSpec.of("r", DataType.INT8, Shape.of(2)).with(TensorSpec.Trait.RAGGED),
                TensorSpec.of("s", DataType.INT32, Shape.of(2))
                        .with(TensorSpec.Trait.SHAPE_TENSOR)
                        .with(TensorSpec.Trait.NON_LINEAR_FORMAT));
    }

    @Test
    void reportsWhatIsDerivedFromABatch() {
        StringBuilder text = new StringBuilder("name: 'm' ");
        List<BatchInput> expected = new ArrayList<>();
        for (BatchInput.Kind kind : BatchInput.Kind.values()) {
            text.append("batch_input { kind: BATCH_" + kind + " target_name: [ '" + kind + "', 'also " + kind
                    + "' ] data_type: TYPE_FP32 source_input: 'x' } ");
            expected.add(new BatchInput(kind, List.of(kind.name(), "also " + kind.name()), DataType.FP32, "x"));
        }
        expected.add(new BatchInput(BatchInput.Kind.ELEMENT_COUNT, List.of("n"), DataType.INT32, "x"));
        ModelConfig config = Configs.config(text
                + "batch_input { target_name: 'n' data_type: TYPE_INT32 source_input: 'x' } "
                + "batch_output { target_name: [ 'y', 'z' ] source_input: 'x' }");

        ModelSettings settings = ModelSettingsReader.settings(config, 1);

        assertThat(settings.batchInputs()).isEqualTo(expected);
        assertThat(settings.batchOutputs())
                .containsExactly(new BatchOutput(BatchOutput.Kind.SCATTER_WITH_INPUT_SHAPE, List.of("y", "z"), "x"));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '"',
            value = {
                "batch_input { kind: 7 } | unknown batch input kind '7' for m",
                "batch_input { source_input: 'x' target_name: 'b' }"
                        + " | batch input data type must be TYPE_INT32 or TYPE_FP32 for m",
                "batch_output { target_name: 'y' }"
                        + " | batch output kind 'BATCH_SCATTER_WITH_INPUT_SHAPE' expects 1 source input, got 0 for m"
            })
    void refusesWhatCannotBeDerivedBeforeTheConfigurationIsComplete(String text, String message) {
        ModelConfig config = Configs.config("name: 'm' " + text);

        assertThatThrownBy(() -> ModelSettingsReader.settings(config, 1))
                .isInstanceOf(InferenceException.class)
                .hasMessage(message);
    }

    @Test
    void leavesTheGraphLevelOpenWhereNoneIsGiven() {
        assertThat(ModelSettingsReader.settings(Configs.config("name: 'm'"), 1).value("optimization.graph.level"))
                .isEmpty();
    }

    @ParameterizedTest
    @EnumSource(DataType.class)
    void knowsEveryDataTypeBothWays(DataType type) {
        ModelConfig config =
                Configs.config("name: 'm' input { name: 'x' data_type: " + type.configName() + " dims: 1 }");

        TensorSpec spec = ModelSettingsReader.settings(config, 1).inputs().getFirst();

        assertThat(spec.type()).isEqualTo(type);
        assertThat(TensorSpecs.input(spec)).isEqualTo(config.getInput(0));
    }

    @Test
    void refusesTensorsWithoutType() {
        assertThatThrownBy(() -> ModelSettingsReader.settings(Configs.config("name: 'm' input { name: 'x' }"), 1))
                .isInstanceOf(InferenceException.class)
                .hasMessage("tensor 'x' must specify 'data_type'");
    }

    @Test
    void readsThePolicyOfDynamicBatching() {
        assertThat(ModelSettingsReader.batchingPolicy(Configs.valid("dynamic_batching {}")))
                .isEqualTo(new BatchingPolicy(true, List.of(8), 0));
        assertThat(ModelSettingsReader.batchingPolicy(Configs.valid(
                        "dynamic_batching { preferred_batch_size: [ 2, 4 ] max_queue_delay_microseconds: 500 }")))
                .isEqualTo(new BatchingPolicy(true, List.of(2, 4), 500_000));
        assertThat(ModelSettingsReader.batchingPolicy(
                        Configs.valid("dynamic_batching { max_queue_delay_microseconds: 18446744073709551615 }")))
                .isEqualTo(new BatchingPolicy(true, List.of(8), Long.MAX_VALUE));
        assertThat(ModelSettingsReader.batchingPolicy(Configs.valid(""))).isSameAs(BatchingPolicy.NONE);
    }

    @Test
    void readsQueuePolicies() {
        BatchingPolicy policy = ModelSettingsReader.batchingPolicy(Configs.valid("""
                dynamic_batching {
                  priority_levels: 3 default_priority_level: 2
                  default_queue_policy { default_timeout_microseconds: 7 allow_timeout_override: true }
                  priority_queue_policy {
                    key: 3 value { timeout_action: DELAY default_timeout_microseconds: 5 max_queue_size: 4294967295 }
                  }
                }"""));

        assertThat(policy.preserveOrdering()).isFalse();
        assertThat(policy.priorities())
                .isEqualTo(new PriorityPolicy(
                        3,
                        2,
                        new QueuePolicy(QueuePolicy.TimeoutAction.REJECT, 7_000, true, 0),
                        Map.of(3L, new QueuePolicy(QueuePolicy.TimeoutAction.DELAY, 5_000, false, 4_294_967_295L))));
    }

    @Test
    void readsWhetherOrderIsKept() {
        assertThat(ModelSettingsReader.batchingPolicy(Configs.valid("dynamic_batching { preserve_ordering: true }")))
                .isEqualTo(new BatchingPolicy(true, List.of(8), 0, true, PriorityPolicy.NONE));
    }

    @Test
    void describesAModelToClients() {
        assertThat(ModelSettingsReader.description(CONFIG, List.of(1L, 3L)))
                .isEqualTo(new ModelMetadata(
                        "m",
                        List.of(1L, 3L),
                        "b",
                        8,
                        true,
                        inputs(),
                        List.of(TensorSpec.of("y", DataType.FP16, Shape.of(1)).withReshape(Shape.SCALAR))));
        ModelConfig onnx = Configs.config("name: 'm' backend: 'onnxruntime' platform: 'onnxruntime_onnx'");
        assertThat(ModelSettingsReader.description(onnx, List.of()).platform()).isEqualTo("onnxruntime_onnx");
    }
}
