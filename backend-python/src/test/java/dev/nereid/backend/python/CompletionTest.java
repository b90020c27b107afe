package dev.nereid.backend.python;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.backend.python.frame.CompletedFrame;
import dev.nereid.backend.python.frame.CompletedFrame.Tensor;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelCompletion;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeModelContext;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;

class CompletionTest {
    private static final Tensor IN = new Tensor("IN", "TYPE_FP32", false, List.of(4L));
    private static final Tensor OUT = new Tensor("OUT", "TYPE_STRING", false, List.of(-1L));
    private static final TensorSpec IN_SPEC = TensorSpec.of("IN", DataType.FP32, Shape.of(4));
    private static final TensorSpec OUT_SPEC = TensorSpec.of("OUT", DataType.BYTES, Shape.of(-1));

    private int maxBatchSize;
    private Optional<Boolean> decoupled = Optional.empty();
    private String scheduling = "";
    private List<Tensor> inputs = List.of(IN);
    private List<Tensor> outputs = List.of(OUT);
    private String json = "{\"input\":[{}],\"output\":[{}]}";

    @Test
    void takesAllOverWhereNothingIsConfigured() {
        maxBatchSize = 4;
        decoupled = Optional.of(true);
        scheduling = "dynamic_batching";
        json = "{\"input\":[{}],\"output\":[{}],\"dynamic_batching\":{}}";

        assertThat(complete(ModelSettings.builder("m", 1)))
                .isEqualTo(ModelCompletion.EMPTY
                        .withInput(IN_SPEC)
                        .withOutput(OUT_SPEC)
                        .withProposedMaxBatchSize(4)
                        .withDynamicBatching()
                        .withDecoupled(true));
    }

    @Test
    void leavesTensorsThatAreAsConfigured() {
        ModelSettingsBuilder configured =
                ModelSettings.builder("m", 1).input(IN_SPEC).output(OUT_SPEC).json("{\"input\":[{}],\"output\":[{}]}");

        assertThat(complete(configured)).isEqualTo(ModelCompletion.EMPTY);
    }

    @Test
    void takesFieldsOfTensorsFromTheConfiguration() {
        inputs = List.of(
                new Tensor("IN", "TYPE_INT64", true, List.of(1L)), new Tensor("B", "TYPE_BOOL", false, List.of()));
        json = "{\"input\":[{\"allow_ragged_batch\":true,\"reshape\":{\"shape\":[2,-1]}},{\"is_shape_tensor\":true}],"
                + "\"output\":[{\"is_non_linear_format_io\":true,\"reshape\":{\"shape\":[]}}]}";

        ModelCompletion completion = complete(ModelSettings.builder("m", 1));

        assertThat(completion.inputs())
                .containsExactly(
                        TensorSpec.of("IN", DataType.INT64, Shape.of(1))
                                .with(TensorSpec.Trait.OPTIONAL)
                                .with(TensorSpec.Trait.RAGGED)
                                .withReshape(Shape.of(2, -1)),
                        TensorSpec.of("B", DataType.BOOL, Shape.of()).with(TensorSpec.Trait.SHAPE_TENSOR));
        assertThat(completion.outputs())
                .containsExactly(
                        OUT_SPEC.with(TensorSpec.Trait.NON_LINEAR_FORMAT).withReshape(Shape.of()));
    }

    @Test
    void neverChangesAConfiguredBatchSizeOrPolicy() {
        maxBatchSize = 8;
        decoupled = Optional.of(true);
        ModelSettingsBuilder configured = ModelSettings.builder("m", 1)
                .maxBatchSize(4)
                .input(IN_SPEC)
                .output(OUT_SPEC)
                .json("{\"model_transaction_policy\":{\"decoupled\":false}}");
        FakeModelContext model = new FakeModelContext(configured.build(), Path.of("m"));

        assertThat(Completion.of(model, frame())).isEqualTo(ModelCompletion.EMPTY);
        assertThat(model.logger().lines())
                .containsExactly(
                        "WARNING model 'm': auto_complete_config sets max_batch_size 8; the configured 4 stays",
                        "WARNING model 'm': auto_complete_config sets decoupled true; the configured false stays");
    }

    @Test
    void keepsTheScheduling() {
        scheduling = "sequence_batching";
        ModelSettingsBuilder sequences = ModelSettings.builder("m", 1).json("{\"sequence_batching\":{}}");
        assertThat(complete(sequences).dynamicBatching()).isFalse();

        scheduling = "dynamic_batching";
        failure(ErrorCode.INTERNAL, "Cannot update scheduling choice from 13 to 11 when auto-completing.", sequences);
        scheduling = "";
        failure(
                ErrorCode.INTERNAL,
                "Cannot update scheduling choice from 11 to 0 when auto-completing.",
                ModelSettings.builder("m", 1).json("{\"dynamic_batching\":{\"preserve_ordering\":false}}"));
    }

    @Test
    void addsASchedulerWithItsOptions() {
        ModelSettingsBuilder none = ModelSettings.builder("m", 1);
        scheduling = "sequence_batching";
        json = "{\"input\":[{}],\"output\":[{}],\"sequence_batching\":{\"max_sequence_idle_microseconds\":100}}";
        assertThat(complete(none).scheduling())
                .contains("{\"sequence_batching\":{\"max_sequence_idle_microseconds\":100}}");
        scheduling = "dynamic_batching";
        json = "{\"input\":[{}],\"output\":[{}],\"dynamic_batching\":{\"max_queue_delay_microseconds\":100}}";
        assertThat(complete(none).scheduling())
                .contains("{\"dynamic_batching\":{\"max_queue_delay_microseconds\":100}}");
        assertThat(complete(none).dynamicBatching()).isFalse();
    }

    @Test
    void refusesEmptiedLists() {
        inputs = List.of();
        invalid(
                "no input, though the configuration has one",
                ModelSettings.builder("m", 1).json("{\"input\":[{\"name\":\"IN\"}]}"));
    }

    @Test
    void refusesWrongValues() {
        ModelSettingsBuilder none = ModelSettings.builder("m", 1);
        inputs = List.of(new Tensor("IN", "TYPE_INVALID", false, List.of()));
        invalid("input 'IN' with data_type 'TYPE_INVALID' (expected:", none);
        inputs = List.of(new Tensor("IN", "TYPE_BYTES", false, List.of()));
        invalid("input 'IN' with data_type 'TYPE_BYTES' (expected:", none);
        inputs = List.of(new Tensor("IN", "TYPE_FP32", false, List.of(-2L)));
        invalid("input 'IN' with dims: [-2] (expected: each >= -1)", none);
        inputs = List.of(IN, IN);
        invalid("1 inputs in a frame with 2", none);
        json = "{\"input\":[{},{}],\"output\":[{}]}";
        invalid("input 'IN' twice", none);
        json = "[".repeat(100_000);
        invalid("a configuration deeper than", none);
        json = "{\"input";
        assertThatThrownBy(() -> complete(none))
                .isInstanceOf(BackendException.class)
                .hasMessageStartingWith("model 'm': auto_complete_config has returned no configuration: json: the end");
        json = "{\"input\":[{}],\"output\":[{}]}";
        inputs = List.of(IN);
        maxBatchSize = -1;
        invalid("max_batch_size -1 (expected: 0 or more)", none);
    }

    @Test
    void sendsTheConfigurationAsItIs() {
        FakeModelContext model = new FakeModelContext(
                ModelSettings.builder("m", 1).json("{\"name\":\"m\"}").build(), Path.of("m"));

        assertThat(Completion.configuration(model)).isEqualTo("{\"name\":\"m\"}");
    }

    private void invalid(String text, ModelSettingsBuilder configured) {
        assertThatThrownBy(() -> complete(configured))
                .isInstanceOfSatisfying(
                        BackendException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT))
                .hasMessageStartingWith("model 'm': auto_complete_config has returned " + text);
    }

    private void failure(ErrorCode code, String text, ModelSettingsBuilder configured) {
        assertThatThrownBy(() -> complete(configured))
                .isInstanceOfSatisfying(
                        BackendException.class, e -> assertThat(e.code()).isEqualTo(code))
                .hasMessage(text);
    }

    private ModelCompletion complete(ModelSettingsBuilder configured) {
        return Completion.of(new FakeModelContext(configured.build(), Path.of("m")), frame());
    }

    private CompletedFrame frame() {
        return new CompletedFrame(maxBatchSize, decoupled, scheduling, inputs, outputs, json);
    }
}
