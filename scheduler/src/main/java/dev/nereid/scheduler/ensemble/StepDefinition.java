package dev.nereid.scheduler.ensemble;

import static java.util.Objects.requireNonNull;

import java.util.Map;

/**
 * One step of an ensemble as it is configured. Immutable.
 *
 * @param inputs the ensemble tensor of each input of the model
 * @param outputs the ensemble tensor of each output of the model
 * @param decoupled whether the model sends any number of responses
 */
public record StepDefinition(String model, Map<String, String> inputs, Map<String, String> outputs, boolean decoupled) {
    /** Checks and copies the components. */
    public StepDefinition {
        requireNonNull(model, "model");
        inputs = Map.copyOf(inputs);
        outputs = Map.copyOf(outputs);
    }
}
