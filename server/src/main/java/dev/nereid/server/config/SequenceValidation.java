package dev.nereid.server.config;

import static dev.nereid.server.config.ConfigErrors.invalid;

import inference.ModelConfig;
import inference.ModelSequenceBatching;
import inference.ModelSequenceBatching.Control;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.Set;

/**
 * Checks the sequence batching of configurations, with the texts of the reference server. What is wrong with a control by
 * itself is found by {@link SequenceTensors}.
 */
final class SequenceValidation {
    private SequenceValidation() {}

    /** Checks a configuration with sequence batching. */
    static void check(ModelConfig config) {
        ModelSequenceBatching batching = config.getSequenceBatching();
        String model = config.getName();
        checkControls(batching, model);
        if (batching.hasDirect()) {
            float utilization = batching.getDirect().getMinimumSlotUtilization();
            if (!(utilization >= 0 && utilization <= 1)) {
                throw invalid("sequence batching minimum slot utilization must be in range (0.0, 1.0] for " + model);
            }
        }
        for (int size : batching.getOldest().getPreferredBatchSizeList()) {
            if (size <= 0) {
                throw invalid("sequence batching preferred batch size must be positive for " + model);
            }
            if (size > config.getMaxBatchSize()) {
                throw invalid("sequence batching preferred batch size must be <= max batch size for " + model);
            }
        }
    }

    private static void checkControls(ModelSequenceBatching batching, String model) {
        Set<String> names = new HashSet<>();
        Set<Control.Kind> kinds = EnumSet.noneOf(Control.Kind.class);
        for (ModelSequenceBatching.ControlInput input : batching.getControlInputList()) {
            if (input.getName().isEmpty()) {
                throw invalid("sequence batching control tensor must have a name for " + model);
            }
            for (Control control : input.getControlList()) {
                if (!names.add(input.getName())) {
                    throw invalid("sequence batching control tensor '" + input.getName()
                            + "' is specified for multiple control kinds for " + model);
                }
                if (!kinds.add(control.getKind())) {
                    throw invalid(
                            "sequence batching specifies multiple " + control.getKind() + " tensors for " + model);
                }
            }
        }
    }
}
