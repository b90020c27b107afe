package dev.nereid.repository.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.nereid.api.InferenceException;
import dev.nereid.spi.ErrorCode;
import inference.ModelConfig;
import java.util.List;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.FieldSource;
import org.junit.jupiter.params.provider.ValueSource;

class ConfigValidationTest {
    static final List<Arguments> WRONG = List.of(
            Arguments.of("backend: 'custom'", "model configuration must specify 'name'"),
            Arguments.of(
                    "name: 'other' backend: 'custom'",
                    "unexpected directory name 'm' for model 'other', directory name must equal model name"),
            Arguments.of("name: 'm' platform: 'caffe2'", "unexpected platform type 'caffe2' for m"),
            Arguments.of("name: 'm'", "unexpected platform type '' for m"),
            Arguments.of(
                    "name: 'm' platform: 'ensemble' backend: 'custom'",
                    "Ensemble model 'm' must have platform type 'ensemble' and empty backend type"),
            Arguments.of(
                    "name: 'm' platform: 'ensemble'",
                    "ensemble scheduling must be set for ensemble m whose platform is ensemble"),
            Arguments.of(
                    "name: 'm' backend: 'onnxruntime' platform: 'tensorrt_plan'",
                    "unexpected 'platform' and 'backend' pair, got:tensorrt_plan, onnxruntime"),
            Arguments.of("name: 'm' backend: 'pytorch'", "unexpected 'platform' and 'backend' pair, got:, pytorch"),
            Arguments.of(
                    "name: 'm' backend: 'tensorflow' platform: 'x'",
                    "unexpected 'platform' and 'backend' pair, got:x, tensorflow"),
            Arguments.of(
                    "name: 'm' backend: 'tensorrt' platform: 'x'",
                    "unexpected 'platform' and 'backend' pair, got:x, tensorrt"),
            Arguments.of(
                    "name: 'm' backend: 'custom' max_batch_size: -1",
                    "'max_batch_size' must be non-negative value for m"),
            batching("preferred_batch_size: 0", "dynamic batching preferred size must be positive for m"),
            batching("preferred_batch_size: -2", "dynamic batching preferred size must be positive for m"),
            batching(
                    "preferred_batch_size: [ 4, 9 ]",
                    "dynamic batching preferred size must be <= max batch size for m"),
            batching("priority_levels: 3", "default priority level must be in range [1, 3] for m"),
            batching(
                    "priority_levels: 3 default_priority_level: 4",
                    "default priority level must be in range [1, 3] for m"),
            batching(
                    "priority_levels: 2 default_priority_level: 1 priority_queue_policy { key: 3 value {} }",
                    "priority queue policy must have priority level in range [1, 2] for m"),
            batching(
                    "priority_levels: 2 default_priority_level: 1 priority_queue_policy { key: 0 value {} }",
                    "priority queue policy must have priority level in range [1, 2] for m"),
            batching(
                    "priority_levels: 2 default_priority_level: 1 preserve_ordering: true",
                    "Only one priority level is allowed when 'preserve_ordering' is true for m"),
            batching(
                    "preserve_ordering: true default_queue_policy {"
                            + " timeout_action: DELAY default_timeout_microseconds: 1 }",
                    "Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true for m"),
            batching(
                    "preserve_ordering: true priority_levels: 1 default_priority_level: 1 priority_queue_policy {"
                            + " key: 1 value { timeout_action: DELAY default_timeout_microseconds: 1 } }",
                    "Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true for m"),
            sequences(
                    "direct { minimum_slot_utilization: 1.5 }",
                    "sequence batching minimum slot utilization must be in range (0.0, 1.0] for m"),
            sequences(
                    "direct { minimum_slot_utilization: nan }",
                    "sequence batching minimum slot utilization must be in range (0.0, 1.0] for m"),
            sequences(
                    "oldest { preferred_batch_size: 0 }",
                    "sequence batching preferred batch size must be positive for m"),
            sequences(
                    "oldest { preferred_batch_size: 9 }",
                    "sequence batching preferred batch size must be <= max batch size for m"),
            sequences("control_input {}", "sequence batching control tensor must have a name for m"),
            sequences(
                    "control_input { name: 'C' control { kind: CONTROL_SEQUENCE_START int32_false_true: [0, 1] }"
                            + " control { kind: CONTROL_SEQUENCE_END int32_false_true: [0, 1] } }",
                    "sequence batching control tensor 'C' is specified for multiple control kinds for m"),
            sequences(
                    "control_input { name: 'C' control { kind: CONTROL_SEQUENCE_START int32_false_true: [0, 1] } }"
                            + " control_input { name: 'D' control { kind: CONTROL_SEQUENCE_START"
                            + " int32_false_true: [0, 1] } }",
                    "sequence batching specifies multiple CONTROL_SEQUENCE_START tensors for m"),
            state(
                    "initial_state {} initial_state {}",
                    "initial_state field for state input 'I' must contain exactly one or zero element. Found '2'"
                            + " elements."),
            state(
                    "initial_state { data_type: TYPE_INT32 }",
                    "'initial_state' field for state input name 'I' has data type TYPE_INT32 (expected: TYPE_FP32)"),
            state(
                    "initial_state { data_type: TYPE_FP32 }",
                    "'initial_state' field for state input name 'I' has no 'name' (expected: one)"),
            state(
                    "initial_state { data_type: TYPE_FP32 name: 'i' }",
                    "'initial_state' field for state input name 'I' has 0 dimensions (expected: 2)"),
            state(
                    "initial_state { data_type: TYPE_FP32 name: 'i' dims: [-1, 2] }",
                    "'initial_state' field for state input name 'I' contains variable dimensions."),
            state(
                    "initial_state { data_type: TYPE_FP32 name: 'i' dims: [1, 3] }",
                    "'initial_state' field for state input name 'I' has 3 as dimension 1 (expected: 2)"),
            state(
                    "initial_state { data_type: TYPE_FP32 name: 'i' dims: [1, 2] }",
                    "'initial_state' field for state input name 'I' has neither 'zero_data' nor 'data_file' (expected:"
                            + " one of them)"),
            state(
                    "use_growable_memory: true",
                    "state input 'I' for m: use_growable_memory (expected: with use_same_buffer_for_input_output, and"
                            + " instances of KIND_GPU alone)"),
            more(
                    "response_cache { enable: true } sequence_batching {}",
                    "Response Cache does not currently support model m with sequence batching scheduler."
                            + " Please disable the response cache."),
            more(
                    "response_cache { enable: true } model_transaction_policy { decoupled: true }",
                    "Response Cache does not currently support model m with 'decoupled' transaction policy."
                            + " Please disable the response cache."),
            more("model_metrics { metric_control {} }", "metric control must specify 'metric_identifier'"),
            more(
                    "model_metrics { metric_control { metric_identifier {} } }",
                    "metric identifier must specify non-empty 'family'"),
            more(
                    "model_metrics { metric_control { metric_identifier { family: 'f' } } }",
                    "metric control must specify 'histogram_options'"),
            more(
                    "model_metrics { metric_control { metric_identifier { family: 'f' } histogram_options {} } }",
                    "histogram options must specify non-empty 'buckets'"));

    private static Arguments batching(String dynamicBatching, String message) {
        return more("dynamic_batching { " + dynamicBatching + " }", message);
    }

    private static Arguments state(String more, String message) {
        return sequences(
                "state { input_name: 'I' output_name: 'O' data_type: TYPE_FP32 dims: [-1, 2] " + more + " }", message);
    }

    private static Arguments sequences(String sequenceBatching, String message) {
        return more("sequence_batching { " + sequenceBatching + " }", message);
    }

    private static Arguments more(String text, String message) {
        return Arguments.of("name: 'm' backend: 'custom' max_batch_size: 8 " + text, message);
    }

    @ParameterizedTest
    @FieldSource("WRONG")
    void refusesWhatIsWrong(String text, String message) {
        ModelConfig config = ConfigNormalization.normalize(Configs.config(text));

        assertRefused(() -> ConfigValidation.check(config, "m"), ErrorCode.INVALID_ARGUMENT, message);
    }

    @Test
    void wantsAVersionPolicy() {
        ModelConfig config = Configs.config("name: 'm' backend: 'custom'");

        assertRefused(
                () -> ConfigValidation.check(config, "m"),
                ErrorCode.INVALID_ARGUMENT,
                "must specify 'version policy' for m");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "platform: 'anything'",
                "dynamic_batching { preferred_batch_size: [ 1, 8 ] }",
                "dynamic_batching { priority_levels: 3 default_priority_level: 3"
                        + " priority_queue_policy { key: 1 value {} } priority_queue_policy { key: 3 value {} } }",
                "dynamic_batching { preserve_ordering: true priority_levels: 1 default_priority_level: 1 }",
                "dynamic_batching { preserve_ordering: true default_queue_policy { timeout_action: DELAY } }",
                "dynamic_batching { preserve_ordering: true default_queue_policy { default_timeout_microseconds: 1 } }",
                "response_cache { enable: true }",
                "model_metrics { metric_control { metric_identifier { family: 'f' }"
                        + " histogram_options { buckets: 1 } } }"
            })
    void acceptsWhatIsRight(String more) {
        assertThatCode(() -> ConfigValidation.check(Configs.valid(more), "m")).doesNotThrowAnyException();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "'tensorflow' platform: 'tensorflow_savedmodel'",
                "'tensorflow' platform: 'tensorflow_graphdef'",
                "'tensorrt' platform: 'tensorrt_plan'",
                "'onnxruntime' platform: 'onnxruntime_onnx'",
                "'pytorch' platform: 'pytorch_libtorch'",
                "'pytorch' platform: 'torch_aoti'"
            })
    void acceptsThePlatformsOfKnownBackends(String backend) {
        ModelConfig config = ConfigNormalization.normalize(Configs.config("name: 'm' backend: " + backend));

        assertThatCode(() -> ConfigValidation.check(config, "m")).doesNotThrowAnyException();
    }

    private static final String X = "model input 'x' ";

    static final List<Arguments> WRONG_TENSORS = List.of(
            Arguments.of("input {}", "model input must specify 'name'"),
            Arguments.of("output {}", "model output must specify 'name'"),
            Arguments.of("input { name: 'x' }", X + "must specify 'data_type'"),
            Arguments.of("output { name: 'y' data_type: 99 dims: 1 }", "model output 'y' must specify 'data_type'"),
            Arguments.of("input { name: 'x' data_type: TYPE_FP32 }", X + "must specify 'dims'"),
            dims("[ 2, 0 ]", "dimension must be integer >= 1, or -1 to indicate a variable-size dimension"),
            dims("[ -2 ]", "dimension must be integer >= 1, or -1 to indicate a variable-size dimension"),
            dims(
                    "[ 2 ] reshape { shape: [ 2, 0 ] }",
                    "reshape dimensions must be integer >= 1, or -1 to indicate a variable-size dimension"),
            dims("[ 2 ] reshape { shape: [ 3 ] }", "has different size for dims and reshape"),
            dims("[ 2 ] reshape { shape: [ ] }", "has different size for dims and reshape"),
            dims("[ -1 ] reshape { shape: [ 3 ] }", "has different size for dims and reshape"),
            dims("[ 3 ] reshape { shape: [ -1 ] }", "has different size for dims and reshape"),
            dims(
                    "[ -1, -1 ] reshape { shape: [ -1 ] }",
                    "has different number of variable-size dimensions for dims and reshape"),
            dims("[ 2, 4, -1, 6 ] reshape { shape: [ 8, -1, 5 ] }", "has different size for dims and reshape"),
            dims("[ 2, -1, 4 ] reshape { shape: [ 4, -1, 2 ] }", "has different size for dims and reshape"),
            dims(
                    "[ 9223372036854775807, 4 ] reshape { shape: [ 9223372036854775807, 8 ] }",
                    "has different size for dims and reshape"),
            Arguments.of(
                    "input { name: 'x' data_type: TYPE_FP32 dims: [ 2, 2 ] format: FORMAT_NHWC }",
                    "model input NHWC/NCHW require 3 dims"),
            Arguments.of(
                    "input { name: 'x' data_type: TYPE_FP32 dims: 2 format: FORMAT_NCHW }",
                    "model input NHWC/NCHW require 3 dims"),
            Arguments.of(
                    "input { name: 'x' data_type: TYPE_FP32 dims: 2 is_shape_tensor: true }",
                    "shape tensors are only supported for TensorRT platform"),
            Arguments.of(
                    "output { name: 'x' data_type: TYPE_FP32 dims: 2 is_shape_tensor: true }",
                    "shape tensors are only supported for TensorRT platform"),
            Arguments.of(
                    "input { name: 'x' data_type: TYPE_FP32 dims: [ 1, 2, 3 ] is_non_linear_format_io: true }",
                    "Non-linear IO format is only supported for the TensorRT platform"),
            Arguments.of(
                    "platform: 'tensorrt_plan' input {"
                            + " name: 'x' data_type: TYPE_FP32 dims: 2 is_non_linear_format_io: true }",
                    "Non-linear IO format input requires 3 dims"),
            Arguments.of(
                    "platform: 'tensorrt_plan' output {"
                            + " name: 'x' data_type: TYPE_FP32 dims: 2 is_non_linear_format_io: true }",
                    "Non-linear IO format output requires 3 dims"),
            batchIo(
                    "batch_input { kind: BATCH_ITEM_SHAPE data_type: TYPE_FP32 }",
                    "batch input kind 'BATCH_ITEM_SHAPE' expects 1 source input, got 0"),
            batchIo(
                    "batch_input { source_input: 'x' data_type: TYPE_INT64 }",
                    "batch input data type must be TYPE_INT32 or TYPE_FP32"),
            batchIo("batch_input { source_input: 'z' data_type: TYPE_INT32 }", "unknown source input name 'z'"),
            batchIo(
                    "batch_input { source_input: 'x' data_type: TYPE_INT32 }",
                    "batch input kind 'BATCH_ELEMENT_COUNT' must specify 'target_name'"),
            batchIo(
                    "batch_input { source_input: 'x' data_type: TYPE_INT32 target_name: [ 'b', 'x' ] }",
                    "batch input target name 'x' is an input already"),
            batchIo(
                    "batch_input { source_input: 'x' data_type: TYPE_INT32 target_name: [ 'b', 'b' ] }",
                    "batch input target name 'b' can only be specified once"),
            batchIo(
                    "batch_input [ { source_input: 'x' data_type: TYPE_INT32 target_name: 'b' },"
                            + " { source_input: 'x' data_type: TYPE_FP32 target_name: 'b' } ]",
                    "batch input target name 'b' can only be specified once"),
            batchIo(
                    "batch_input { source_input: [ 'x', 'x' ] data_type: TYPE_INT32 target_name: 'b' }",
                    "batch input kind 'BATCH_ELEMENT_COUNT' expects 1 source input, got 2"),
            batchIo(
                    "batch_input { source_input: 'x' target_name: 'b' }",
                    "batch input data type must be TYPE_INT32 or TYPE_FP32"),
            batchIo(
                    "batch_output { source_input: 'x' }",
                    "batch output kind 'BATCH_SCATTER_WITH_INPUT_SHAPE' must specify 'target_name'"),
            batchIo(
                    "batch_output [ { target_name: 'y' source_input: 'x' },"
                            + " { target_name: 'y' source_input: 'x' } ]",
                    "target output name 'y' can only be specified once"),
            batchIo(
                    "output { name: 'w' data_type: TYPE_FP32 dims: [ 2, -1 ] }"
                            + " batch_output { target_name: 'w' source_input: 'x' }",
                    "target output 'w' of shape [2,-1] has a variable-size dimension where its source input 'x' of shape"
                            + " [1] has none"),
            batchIo(
                    "platform: 'tensorrt_plan' output { name: 'w' data_type: TYPE_INT32 dims: 1 is_shape_tensor: true }"
                            + " batch_output { target_name: 'w' source_input: 'x' }",
                    "target output 'w' of a batch output can not be a shape tensor"),
            batchIo(
                    "platform: 'tensorrt_plan'"
                            + " input { name: 'w' data_type: TYPE_INT32 dims: 1 is_shape_tensor: true }"
                            + " batch_output { target_name: 'y' source_input: 'w' }",
                    "source input 'w' of a batch output can not be a shape tensor"),
            batchIo(
                    "batch_output { target_name: 'y' source_input: [ 'x', 'x' ] }",
                    "batch output kind 'BATCH_SCATTER_WITH_INPUT_SHAPE' expects 1 source input, got 2"),
            batchIo("batch_output { target_name: 'y' source_input: 'y' }", "unknown source input name 'y'"),
            batchIo("batch_output { target_name: 'x' source_input: 'x' }", "unknown target output name 'x'"),
            batchIo(
                    "batch_output { target_name: [ 'y', 'y' ] source_input: 'x' }",
                    "target output name 'y' can only be specified once"),
            batchIo("batch_input { kind: 9 }", "unknown batch input kind '9'"),
            batchIo("batch_output { kind: 9 }", "unknown batch output kind '9'"));

    private static Arguments dims(String dims, String message) {
        return Arguments.of("input { name: 'x' data_type: TYPE_FP32 dims: " + dims + " }", X + message);
    }

    private static Arguments batchIo(String text, String message) {
        return Arguments.of(
                "input { name: 'x' data_type: TYPE_FP32 dims: 1 } output { name: 'y' data_type: TYPE_FP32 dims: 1 } "
                        + text,
                message);
    }

    @ParameterizedTest
    @FieldSource("WRONG_TENSORS")
    void refusesWrongTensors(String more, String message) {
        assertRefused(
                () -> ConfigValidation.checkTensors(Configs.valid(more)),
                ErrorCode.INVALID_ARGUMENT,
                message + " for m");
    }

    @Test
    void refusesScalarsOfModelsThatDoNotBatch() {
        ModelConfig config =
                Configs.config("name: 'm' input { name: 'x' data_type: TYPE_FP32 dims: 1 reshape { shape: [ ] } }");

        assertRefused(
                () -> ConfigValidation.checkTensors(config),
                ErrorCode.INVALID_ARGUMENT,
                X + "cannot have empty reshape for non-batching model as scalar tensors are not supported for m");
    }

    @ParameterizedTest
    @ValueSource(strings = {"../labels.txt", "a/../../labels.txt", "..", "/../labels.txt", "labels\\000.txt"})
    void refusesLabelFilesOutsideTheModel(String file) {
        ModelConfig config =
                Configs.valid("output { name: 'y' data_type: TYPE_FP32 dims: 1 label_filename: '" + file + "' }");

        assertRefused(
                () -> ConfigValidation.checkTensors(config),
                ErrorCode.UNSUPPORTED,
                "label file path '" + config.getOutput(0).getLabelFilename()
                        + "' for output 'y' in model 'm' is outside model directory");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "input { name: 'x' data_type: TYPE_FP32 dims: [ 2, -1 ] }",
                "input { name: 'x' data_type: TYPE_FP32 dims: 1 reshape { shape: [ ] } }",
                "input { name: 'x' data_type: TYPE_FP32 dims: [ 1, 1 ] reshape { shape: [ ] } }",
                "input { name: 'x' data_type: TYPE_FP32 dims: [ 2, 4, -1, 6 ] reshape { shape: [ 8, -1, 1, 6 ] } }",
                "input { name: 'x' data_type: TYPE_FP32 dims: [ 1, 2, 3 ] format: FORMAT_NHWC }",
                "platform: 'tensorrt_plan' input { name: 'x' data_type: TYPE_FP32 dims: 2 is_shape_tensor: true }",
                "output { name: 'y' data_type: TYPE_FP32 dims: 1 label_filename: 'a/../labels.txt' }",
                "output { name: 'y' data_type: TYPE_FP32 dims: 1 label_filename: '/labels.txt' }",
                "input { name: 'x' data_type: TYPE_FP32 dims: 1 } output { name: 'y' data_type: TYPE_FP32 dims: 1 }"
                        + " batch_input { source_input: 'x' data_type: TYPE_FP32 target_name: 'b' }"
                        + " batch_output { source_input: 'x' target_name: 'y' }",
                "input { name: 'x' data_type: TYPE_STRING dims: -1 allow_ragged_batch: true }"
                        + " output { name: 'y' data_type: TYPE_FP32 dims: [ -1, 4 ] }"
                        + " batch_input { kind: BATCH_ITEM_SHAPE source_input: 'x' data_type: TYPE_INT32"
                        + " target_name: [ 'b', 'c' ] }"
                        + " batch_output { source_input: 'x' target_name: 'y' }"
            })
    void acceptsRightTensors(String more) {
        assertThatCode(() -> ConfigValidation.checkTensors(Configs.valid(more))).doesNotThrowAnyException();
    }

    private static final String GROUP = "instance group g of model m ";

    static final List<Arguments> WRONG_GROUPS = List.of(
            Arguments.of("", List.of(), "must specify one or more 'instance group's for m"),
            group("kind: KIND_MODEL gpus: 0", List.of(0), "has kind KIND_MODEL but specifies one or more GPUs"),
            group("kind: KIND_CPU gpus: 0", List.of(0), "has kind KIND_CPU but specifies one or more GPUs"),
            group("kind: KIND_GPU", List.of(), "has kind KIND_GPU but no GPUs are available"),
            group("kind: KIND_GPU", List.of(0), "has kind KIND_GPU but specifies no GPUs"),
            group(
                    "kind: KIND_GPU gpus: [ 0, 4 ]",
                    List.of(0, 1),
                    "specifies invalid or unsupported gpu id 4. GPUs with at least the minimum required CUDA compute"
                            + " compatibility of 6.000000 are: 0, 1"),
            group(
                    "kind: KIND_CPU profile: '0'",
                    List.of(),
                    "and platform pspecifies profile field which is only supported for TensorRT models"),
            Arguments.of(
                    "instance_group [ { count: 4096 kind: KIND_CPU }, { count: 1 kind: KIND_MODEL } ]",
                    List.of(),
                    "the instance groups of model m have 4097 instances (expected: at most 4096)"),
            Arguments.of(
                    "instance_group [ { count: 2147483647 kind: KIND_GPU gpus: [ 0, 1 ] } ]",
                    List.of(0, 1),
                    "the instance groups of model m have 4294967294 instances (expected: at most 4096)"));

    private static Arguments group(String group, List<Integer> gpus, String message) {
        return Arguments.of("instance_group { name: 'g' " + group + " }", gpus, GROUP + message);
    }

    @ParameterizedTest
    @FieldSource("WRONG_GROUPS")
    void refusesWrongInstanceGroups(String more, List<Integer> gpus, String message) {
        ModelConfig config = Configs.config("name: 'm' platform: 'p' " + more);

        assertRefused(() -> ConfigValidation.checkInstanceGroups(config, gpus), ErrorCode.INVALID_ARGUMENT, message);
    }

    @Test
    void refusesProfilesThatAreNoNumbers() {
        ModelConfig config = Configs.config("name: 'm' platform: 'tensorrt_plan'"
                + " instance_group { name: 'g' kind: KIND_CPU profile: [ '0', '-1' ] }");

        assertRefused(
                () -> ConfigValidation.checkInstanceGroups(config, List.of()),
                ErrorCode.INVALID_ARGUMENT,
                GROUP + "and platform tensorrt_plan specifies invalid profile -1. The field should contain the string"
                        + " representation of a non-negative integer.");
    }

    @Test
    void acceptsRightInstanceGroups() {
        ModelConfig config = Configs.config("name: 'm' instance_group [ { kind: KIND_CPU count: 4091 },"
                + " { kind: KIND_MODEL count: 1 }, { kind: KIND_GPU count: 2 gpus: [ 1, 0 ] } ]");
        ModelConfig ensemble = Configs.config("name: 'm' ensemble_scheduling {}");

        assertThatCode(() -> ConfigValidation.checkInstanceGroups(config, List.of(0, 1)))
                .doesNotThrowAnyException();
        assertThatCode(() -> ConfigValidation.checkInstanceGroups(ensemble, List.of()))
                .doesNotThrowAnyException();
    }

    private static void assertRefused(ThrowingCallable check, ErrorCode code, String message) {
        InferenceException error = catchThrowableOfType(InferenceException.class, check);

        assertThat(error).isNotNull();
        assertThat(error.publicMessage()).isEqualTo(message);
        assertThat(error.code()).isEqualTo(code);
    }
}
