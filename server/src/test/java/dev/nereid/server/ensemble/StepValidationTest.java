package dev.nereid.server.ensemble;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.TextFormat;
import dev.nereid.api.InferenceException;
import inference.ModelConfig;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** The ensembles here have input IN and output OUT of FP32 [2], in batches of up to 4. */
class StepValidationTest {
    private static final String BATCHES = "max_batch_size: 4 ";

    private static ModelConfig config(String text) {
        try {
            return TextFormat.parse(text, ModelConfig.class);
        } catch (TextFormat.ParseException e) {
            throw new AssertionError(text, e);
        }
    }

    private static ModelConfig model(String name, String more, String in, String out) {
        return config("name: '" + name + "' " + more + tensors("input", in) + tensors("output", out));
    }

    /** Returns tensors such as {@code "A:FP32:2 B:INT32:-1"}. */
    private static String tensors(String kind, String tensors) {
        return Stream.of(tensors.split(" "))
                .map(tensor -> tensor.split(":"))
                .map(tensor -> kind + " { name: '" + tensor[0] + "' data_type: TYPE_" + tensor[1] + " dims: ["
                        + tensor[2] + "] } ")
                .collect(Collectors.joining());
    }

    private static String step(String model, Map<String, String> inputs, Map<String, String> outputs) {
        return "step { model_name: '" + model + "' model_version: -1 " + maps("input_map", inputs)
                + maps("output_map", outputs) + "} ";
    }

    private static String maps(String field, Map<String, String> pairs) {
        return pairs.entrySet().stream()
                .map(pair -> field + " { key: '" + pair.getKey() + "' value: '" + pair.getValue() + "' } ")
                .collect(Collectors.joining());
    }

    private static ModelConfig check(String steps, ModelConfig... models) {
        return check("OUT:FP32:2", steps, models);
    }

    private static ModelConfig check(String outputs, String steps, ModelConfig... models) {
        ModelConfig ensemble = config("name: 'e' platform: 'ensemble' " + BATCHES + tensors("input", "IN:FP32:2")
                + tensors("output", outputs) + "ensemble_scheduling { " + steps + "}");
        List<ModelConfig> configs = new ArrayList<>();
        for (var step : ensemble.getEnsembleScheduling().getStepList()) {
            configs.add(Stream.of(models)
                    .filter(model -> model.getName().equals(step.getModelName()))
                    .findFirst()
                    .orElseThrow());
        }
        return StepValidation.check(ensemble, configs);
    }

    private static final Map<String, String> IN = Map.of("I", "IN");
    private static final Map<String, String> OUT = Map.of("O", "OUT");
    private static final ModelConfig PLAIN = model("m", BATCHES, "I:FP32:2", "O:FP32:2");
    private static final ModelConfig DECOUPLED =
            model("d", BATCHES + "model_transaction_policy { decoupled: true } ", "I:FP32:2", "O:FP32:2");
    private static final ModelConfig PAIR = model("p", BATCHES, "A:FP32:2 B:FP32:2", "O:FP32:2");

    private static void refused(String message, String steps, ModelConfig... models) {
        assertThatThrownBy(() -> check(steps, models))
                .isInstanceOf(InferenceException.class)
                .hasMessage(message);
    }

    @Test
    void acceptsWhatFits() {
        assertThat(check(step("m", IN, OUT), PLAIN).getModelTransactionPolicy().getDecoupled())
                .isFalse();
        assertThat(check(step("m", IN, OUT), PLAIN).hasModelTransactionPolicy()).isTrue();
    }

    @Test
    void refusesSmallerBatches() {
        refused(
                "ensemble e allows maximum batch size 4, but it contains model m which only allows maximum batch size"
                        + " to be 2",
                step("m", IN, OUT),
                model("m", "max_batch_size: 2 ", "I:FP32:2", "O:FP32:2"));
    }

    @Test
    void refusesUnknownTensorsOfModels() {
        refused(
                "in ensemble e, ensemble tensor IN is mapping to non-existing input X in model m",
                step("m", Map.of("X", "IN"), OUT),
                PLAIN);
        refused(
                "in ensemble e, ensemble tensor OUT is mapped from non-existing output X in model m",
                step("m", IN, Map.of("X", "OUT")),
                PLAIN);
    }

    @Test
    void refusesOutputsOfOneName() {
        refused(
                "in ensemble e, multiple outputs in model m are mapped to the same ensemble tensor OUT",
                step("m", IN, OUT),
                model("m", BATCHES, "I:FP32:2", "O:FP32:2 O:FP32:2"));
    }

    /** Whatever its configuration says. */
    @Test
    void isNotDecoupledIfNoStepIs() {
        ModelConfig ensemble = config("name: 'e' platform: 'ensemble' " + BATCHES
                + "model_transaction_policy { decoupled: true } " + tensors("input", "IN:FP32:2")
                + tensors("output", "OUT:FP32:2") + "ensemble_scheduling { " + step("m", IN, OUT) + "}");
        assertThat(StepValidation.check(ensemble, List.of(PLAIN))
                        .getModelTransactionPolicy()
                        .getDecoupled())
                .isFalse();
    }

    @Test
    void refusesInputsWithoutTensor() {
        refused(
                "in ensemble e, input B in model p is not mapped to any ensemble tensors",
                step("p", Map.of("A", "IN"), OUT),
                PAIR);
        check(
                step("p", Map.of("A", "IN"), OUT),
                config(PAIR.toString().replace("name: \"B\"", "name: \"B\" optional: true")));
    }

    @Test
    void refusesOtherTypesAndShapes() {
        refused(
                "in ensemble e, ensemble tensor IN: inconsistent data type: TYPE_FP32 is inferred from model e while"
                        + " TYPE_INT32 is inferred from model m",
                step("m", IN, OUT),
                model("m", BATCHES, "I:INT32:2", "O:FP32:2"));
        refused(
                "in ensemble e, ensemble tensor OUT: inconsistent shape: [-1,2] is inferred from model e while [-1,3]"
                        + " is inferred from model m",
                step("m", IN, OUT),
                model("m", BATCHES, "I:FP32:2", "O:FP32:3"));
    }

    /** Sizes that vary fit any size; a model without batches may have the batch dimension among its own. */
    @Test
    void acceptsShapesThatMayFit() {
        check(step("m", IN, OUT), model("m", BATCHES, "I:FP32:-1", "O:FP32:-1"));
        check(step("m", IN, OUT), model("m", "", "I:FP32:-1,2", "O:FP32:2"));
    }

    @Test
    void isDecoupledIfAStepIs() {
        assertThat(check(step("d", IN, OUT), DECOUPLED)
                        .getModelTransactionPolicy()
                        .getDecoupled())
                .isTrue();
    }

    /** Responses of two decoupled steps cannot be joined; with tensors from before they can. */
    @Test
    void refusesToJoinResponsesOfDifferentDecoupledSteps() {
        String both = step("d", IN, Map.of("O", "a")) + step("d", IN, Map.of("O", "b"));
        refused(
                "in ensemble e, step of model 'p' receives inputs originated from different decoupled models",
                both + step("p", Map.of("A", "a", "B", "b"), OUT),
                DECOUPLED,
                PAIR);
        assertThatThrownBy(() ->
                        check("OUT:FP32:2 b:FP32:2", both + step("m", Map.of("I", "a"), OUT), DECOUPLED, PLAIN))
                .hasMessage(
                        "in ensemble e, step of model 'e' receives inputs originated from different decoupled models");
        assertThat(check(step("d", IN, Map.of("O", "a")) + step("p", Map.of("A", "a", "B", "IN"), OUT), DECOUPLED, PAIR)
                        .getModelTransactionPolicy()
                        .getDecoupled())
                .isTrue();
        assertThat(check(
                                step("d", IN, Map.of("O", "a"))
                                        + step("d", Map.of("I", "a"), Map.of("O", "b"))
                                        + step("p", Map.of("A", "a", "B", "b"), OUT),
                                DECOUPLED,
                                PAIR)
                        .getModelTransactionPolicy()
                        .getDecoupled())
                .isTrue();
    }
}
