package dev.nereid.server.lifecycle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.tuple;

import dev.nereid.api.InferenceException;
import dev.nereid.repository.config.ConfigNormalization;
import dev.nereid.repository.config.Configs;
import dev.nereid.scheduler.sequence.ControlValues;
import dev.nereid.scheduler.sequence.InitialState;
import dev.nereid.scheduler.sequence.SequencePlan;
import dev.nereid.spi.Shape;
import inference.ModelConfig;
import java.io.IOException;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class SequencePlanReaderTest {
    @TempDir
    private Path model;

    private SequencePlan plan(String more) {
        ModelConfig config = ConfigNormalization.normalize(Configs.config("name: 'm' backend: 'custom' " + more));
        return SequencePlanReader.plan(config, ModelSettingsReader.settings(config, 1), model)
                .orElseThrow();
    }

    private static String state(String dims, String type, String more) {
        return "max_batch_size: 4 sequence_batching { state { input_name: 'I' output_name: 'O' data_type: " + type
                + " dims: " + dims + " " + more + " } }";
    }

    @Test
    void readsTheDirectStrategy() {
        SequencePlan plan = plan("max_batch_size: 4 sequence_batching { direct { max_queue_delay_microseconds: 7"
                + " minimum_slot_utilization: 0.5 } control_input { name: 'S' control { kind: CONTROL_SEQUENCE_START"
                + " fp32_false_true: [ 2, 3 ] } control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_INT32 } } }");
        assertThat(plan.isDirect()).isTrue();
        assertThat(plan.slots()).isEqualTo(4);
        assertThat(plan.maxQueueDelayNanos()).isEqualTo(7000);
        assertThat(plan.minimumSlotUtilization()).isEqualTo(0.5f);
        assertThat(plan.controls())
                .extracting(ControlValues::falseBits, ControlValues::trueBits)
                .containsExactly(tuple(Float.floatToRawIntBits(2), Float.floatToRawIntBits(3)), tuple(0, 0));
    }

    @Test
    void readsTheOldestStrategy() {
        SequencePlan plan = plan("max_batch_size: 4 sequence_batching { oldest { max_candidate_sequences: 9"
                + " preferred_batch_size: [ 2 ] preserve_ordering: true } }");
        assertThat(plan.isDirect()).isFalse();
        assertThat(plan.slots()).isEqualTo(9);
        assertThat(plan.preferredSizes()).isEqualTo(List.of(2));
        assertThat(plan.preserveOrdering()).isTrue();
        assertThat(plan("sequence_batching { oldest {} }").slots()).isEqualTo(1);
    }

    @Test
    void statesBeginWithZeros() {
        InitialState state = plan(state("[ -1, 2 ]", "TYPE_FP32", "")).states().getFirst();
        assertThat(state.value().shape()).isEqualTo(Shape.of(1, 1, 2));
        assertThat(state.value().data().toArray(ValueLayout.JAVA_BYTE))
                .containsOnly(0)
                .hasSize(8);
        InitialState sized = plan(state(
                        "[ -1, 2 ]",
                        "TYPE_FP32",
                        "initial_state { name: 'z' data_type: TYPE_FP32 dims: [ 3, 2 ] zero_data: true }"))
                .states()
                .getFirst();
        assertThat(sized.value().shape()).isEqualTo(Shape.of(1, 3, 2));
        assertThat(plan(state("[ 2 ]", "TYPE_STRING", ""))
                        .states()
                        .getFirst()
                        .value()
                        .byteSize())
                .isEqualTo(8);
    }

    @Test
    void statesBeginWithTheirFile() throws IOException {
        Path file = Files.createDirectories(model.resolve("initial_state")).resolve("f");
        Files.write(file, new byte[] {1, 0, 0, 0, 'x', 0, 0, 0, 0, 9});
        String initial = "initial_state { name: 'z' data_type: %s dims: [ 2 ] data_file: '%s' }";
        InitialState numbers = plan(state("[ 2 ]", "TYPE_INT32", initial.formatted("TYPE_INT32", "f")))
                .states()
                .getFirst();
        assertThat(numbers.value().byteSize()).isEqualTo(8);
        assertThat(numbers.value().data().get(ValueLayout.JAVA_INT_UNALIGNED, 0))
                .isEqualTo(1);
        InitialState texts = plan(state("[ 2 ]", "TYPE_STRING", initial.formatted("TYPE_STRING", "f")))
                .states()
                .getFirst();
        assertThat(texts.value().byteSize()).isEqualTo(9);
        assertThatThrownBy(() -> plan(state("[ 2 ]", "TYPE_FP64", initial.formatted("TYPE_FP64", "f"))))
                .isInstanceOf(InferenceException.class)
                .hasMessage("initial_state setting expects 16 bytes, but the data provided from fonly has 10 bytes.");
        assertThatThrownBy(() -> plan(state("[ 2 ]", "TYPE_FP64", initial.formatted("TYPE_FP64", "../f"))))
                .as("whether the file exists or not")
                .hasMessage("file path '../f' is outside of the model's initial_state directory");
        Files.createFile(model.resolve("f"));
        assertThatThrownBy(() -> plan(state("[ 2 ]", "TYPE_FP64", initial.formatted("TYPE_FP64", "../f"))))
                .hasMessage("file path '../f' is outside of the model's initial_state directory");
    }
}
