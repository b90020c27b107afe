package dev.nereid.repository.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferenceException;
import dev.nereid.spi.ErrorCode;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.FieldSource;

class EnsembleValidationTest {
    private static final String TENSORS = """
            input { name: 'IN' data_type: TYPE_FP32 dims: [ 1 ] }
            output { name: 'OUT' data_type: TYPE_FP32 dims: [ 1 ] }
            """;

    static final List<Arguments> WRONG = List.of(
            wrong("instance_group { count: 1 }", "instance group should not be specified for ensemble 'e'"),
            wrong("optimization { }", "optimization should not be specified for ensemble 'e'"),
            wrong("model_warmup { name: 'w' }", "model_warmup can not be specified for ensemble 'e'"),
            steps("", "must specify 'step' for ensemble 'e'"),
            steps(step("", "IN", "OUT"), "must specify 'model_name' in step 0 of ensemble 'e'"),
            steps(
                    step("m", "IN", "OUT") + "step { model_name: 'm' output_map { key: 'o' value: 't' } }",
                    "must specify 'input_map' in step 1 of ensemble 'e'"),
            steps(
                    "step { model_name: 'm' input_map { key: 'i' value: 'IN' } }",
                    "must specify 'output_map' in step 0 of ensemble 'e'"),
            steps(
                    step("m", "IN", "OUT") + step("n", "IN", "OUT"),
                    "ensemble tensor 'OUT' can appear in an output map only once for ensemble 'e' step 1"),
            steps(step("m", "x", "OUT"), "ensemble input 'IN' for ensemble e' is not used"),
            steps(step("m", "IN", "x"), "ensemble output 'OUT' for ensemble e' is not used"),
            steps(
                    step("m", "IN", "a") + step("n", "b", "OUT"),
                    "output 'OUT' for ensemble 'e' is not written: at least one of its depending tensors, 'b', is not"
                            + " connected"),
            steps(step("m", "OUT", "a") + step("n", "IN", "b"), "output 'OUT' for ensemble 'e' is not written"),
            steps(
                    step("m", "IN", "a") + step("n", "c", "b") + step("o", "b", "c") + step("p", "a", "OUT"),
                    "ensemble tensor 'b' is unused in ensemble 'e'"),
            steps(
                    step("m", "IN", "OUT") + step("n", "IN", "dead"),
                    "ensemble tensor 'dead' is unused in ensemble 'e'"));

    private static String step(String model, String input, String output) {
        return "step { model_name: '" + model + "' model_version: -1 input_map { key: 'i' value: '" + input
                + "' } output_map { key: 'o' value: '" + output + "' } }\n";
    }

    private static Arguments wrong(String more, String message) {
        return steps(step("m", "IN", "OUT") + "}\n" + more + " parameters {", message);
    }

    private static Arguments steps(String steps, String message) {
        return Arguments.of(TENSORS + "ensemble_scheduling { " + steps + "}", message);
    }

    @ParameterizedTest
    @FieldSource("WRONG")
    void refusesWithTheTextsOfTheReference(String config, String message) {
        assertThatThrownBy(() -> check("platform: 'ensemble' " + config))
                .isInstanceOfSatisfying(InferenceException.class, error -> {
                    assertThat(error.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
                })
                .hasMessage(message);
    }

    @Test
    void refusesAnotherPlatform() {
        assertThatThrownBy(() -> check("backend: 'custom' ensemble_scheduling { }"))
                .hasMessage("ensemble scheduling cannot be set for model 'e' whose platform is not ensemble");
    }

    @Test
    void acceptsStepsInAnyOrder() {
        assertThatCode(() -> check("platform: 'ensemble' " + TENSORS + "ensemble_scheduling { " + step("n", "a", "OUT")
                        + step("m", "IN", "a") + "}"))
                .doesNotThrowAnyException();
    }

    private static void check(String config) {
        ConfigValidation.check(ConfigNormalization.normalize(Configs.config("name: 'e' " + config)), "e");
    }
}
