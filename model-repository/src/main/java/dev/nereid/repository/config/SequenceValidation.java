package dev.nereid.repository.config;

import static dev.nereid.repository.config.ConfigErrors.invalid;

import inference.ModelConfig;
import inference.ModelInstanceGroup;
import inference.ModelSequenceBatching;
import inference.ModelSequenceBatching.Control;
import inference.ModelSequenceBatching.InitialState;
import inference.ModelSequenceBatching.State;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.Set;

/**
 * Checks the sequence batching of configurations, with the texts of the reference server. {@link SequenceTensors} finds
 * mistakes within a single control.
 */
final class SequenceValidation {
    private SequenceValidation() {}

    static void check(ModelConfig config) {
        ModelSequenceBatching batching = config.getSequenceBatching();
        String model = config.getName();
        checkControls(batching, model);
        batching.getStateList().forEach(state -> checkState(state, config));
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

    private static void checkState(State state, ModelConfig config) {
        String input = state.getInputName();
        boolean onGpu = config.getInstanceGroupCount() > 0
                && config.getInstanceGroupList().stream()
                        .allMatch(group -> group.getKind() == ModelInstanceGroup.Kind.KIND_GPU);
        if (state.getUseGrowableMemory() && !(state.getUseSameBufferForInputOutput() && onGpu)) {
            throw invalid(
                    "state input '" + input + "' for " + config.getName() + ": use_growable_memory (expected: with"
                            + " use_same_buffer_for_input_output, and instances of KIND_GPU alone)");
        }
        if (state.getInitialStateCount() > 1) {
            throw invalid("initial_state field for state input '" + input
                    + "' must contain exactly one or zero element. Found '" + state.getInitialStateCount()
                    + "' elements.");
        }
        if (state.getInitialStateCount() == 1) {
            checkInitial(state, state.getInitialState(0));
        }
    }

    private static void checkInitial(State state, InitialState initial) {
        String of = "'initial_state' field for state input name '" + state.getInputName() + "' ";
        if (initial.getDataType() != state.getDataType()) {
            throw invalid(of + "has data type " + initial.getDataType() + " (expected: " + state.getDataType() + ")");
        }
        if (initial.getName().isEmpty()) {
            throw invalid(of + "has no 'name' (expected: one)");
        }
        if (initial.getDimsCount() != state.getDimsCount()) {
            throw invalid(
                    of + "has " + initial.getDimsCount() + " dimensions (expected: " + state.getDimsCount() + ")");
        }
        for (int i = 0; i < initial.getDimsCount(); i++) {
            if (initial.getDims(i) < 0) {
                throw invalid(of + "contains variable dimensions.");
            }
            if (state.getDims(i) >= 0 && state.getDims(i) != initial.getDims(i)) {
                throw invalid(of + "has " + initial.getDims(i) + " as dimension " + i + " (expected: "
                        + state.getDims(i) + ")");
            }
        }
        if (initial.getStateDataCase() == InitialState.StateDataCase.STATEDATA_NOT_SET) {
            throw invalid(of + "has neither 'zero_data' nor 'data_file' (expected: one of them)");
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
