package dev.nereid.distribution.demo;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import inference.ModelConfig;
import inference.ModelEnsembling.Step;
import inference.ModelInput;
import org.junit.jupiter.api.Test;

class EnsemblePathTest {
    @Test
    void namesStepsInTheirOrderAndIndependentOnesTogether() {
        ModelConfig config = ensemble(
                step("last", "end", "b", "c"),
                step("left", "b", "x"),
                step("right", "c", "x"),
                step("first", "x", "IN"));

        assertThat(EnsemblePath.text(config)).isEqualTo("first, then left and right, then last");
    }

    @Test
    void refusesStepsThatWaitForEver() {
        assertThatThrownBy(() -> EnsemblePath.text(ensemble(step("a", "z", "y"))))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("wait for ever");
    }

    private static Step step(String model, String output, String... inputs) {
        Step.Builder step = Step.newBuilder().setModelName(model).putOutputMap("OUT", output);
        for (int i = 0; i < inputs.length; i++) {
            step.putInputMap("IN" + i, inputs[i]);
        }
        return step.build();
    }

    private static ModelConfig ensemble(Step... steps) {
        ModelConfig.Builder config = ModelConfig.newBuilder()
                .setName("e")
                .addInput(ModelInput.newBuilder().setName("IN"));
        for (Step step : steps) {
            config.getEnsembleSchedulingBuilder().addStep(step);
        }
        return config.build();
    }
}
