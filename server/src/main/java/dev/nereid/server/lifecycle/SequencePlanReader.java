package dev.nereid.server.lifecycle;

import dev.nereid.api.InferenceException;
import dev.nereid.scheduler.sequence.ControlValues;
import dev.nereid.scheduler.sequence.InitialState;
import dev.nereid.scheduler.sequence.SequencePlan;
import dev.nereid.spi.ControlInput;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.SequenceBatching;
import inference.ModelConfig;
import inference.ModelSequenceBatching;
import inference.ModelSequenceBatching.Control;
import inference.ModelSequenceBatching.StrategyOldest;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** Reads how the sequences of a model are scheduled. Static functions only. */
public final class SequencePlanReader {
    private static final int NO_VALUE = 0;

    private SequencePlanReader() {}

    /**
     * Returns the plan of a model.
     *
     * @param config a normalized, checked configuration
     * @param settings the same configuration, as its backend sees it
     * @param directory the directory of the model, with files for initial states
     * @return the plan; empty for a model without sequences
     * @throws InferenceException if a file of an initial state is too short, or cannot be read
     */
    public static Optional<SequencePlan> plan(ModelConfig config, ModelSettings settings, Path directory) {
        return settings.sequenceBatching()
                .map(batching -> plan(config, batching, InitialStates.of(config, batching, directory)));
    }

    /**
     * Checks that the files of initial states are there, without reading them.
     *
     * @param config the completed configuration
     * @throws InferenceException if one is missing, is no file, or lies elsewhere
     */
    public static void checkFiles(ModelConfig config, Path directory) {
        InitialStates.checkFiles(config, directory);
    }

    private static SequencePlan plan(ModelConfig config, SequenceBatching described, List<InitialState> states) {
        ModelSequenceBatching batching = config.getSequenceBatching();
        int places = Math.max(1, config.getMaxBatchSize());
        if (described.strategy() == SequenceBatching.Strategy.DIRECT) {
            long delay = batching.getDirect().getMaxQueueDelayMicroseconds();
            return new SequencePlan(
                    described,
                    controls(batching, described),
                    states,
                    places,
                    ModelSettingsReader.nanos(delay),
                    batching.getDirect().getMinimumSlotUtilization(),
                    List.of(),
                    false);
        }
        StrategyOldest oldest = batching.getOldest();
        int candidates = oldest.getMaxCandidateSequences();
        return new SequencePlan(
                described,
                controls(batching, described),
                states,
                candidates > 0 ? candidates : places,
                ModelSettingsReader.nanos(oldest.getMaxQueueDelayMicroseconds()),
                0,
                oldest.getPreferredBatchSizeList(),
                oldest.getPreserveOrdering());
    }

    /** The described controls are in the order of the configuration. */
    private static List<ControlValues> controls(ModelSequenceBatching batching, SequenceBatching described) {
        List<ControlValues> controls = new ArrayList<>();
        List<Control> configured = batching.getControlInputList().stream()
                .flatMap(input -> input.getControlList().stream())
                .toList();
        for (int i = 0; i < configured.size(); i++) {
            controls.add(values(described.controls().get(i), configured.get(i)));
        }
        return controls;
    }

    private static ControlValues values(ControlInput input, Control control) {
        if (input.kind() == ControlInput.Kind.SEQUENCE_CORRID) {
            return new ControlValues(input, NO_VALUE, NO_VALUE);
        }
        return switch (input.type()) {
            case FP32 ->
                new ControlValues(
                        input,
                        Float.floatToRawIntBits(control.getFp32FalseTrue(0)),
                        Float.floatToRawIntBits(control.getFp32FalseTrue(1)));
            case BOOL ->
                new ControlValues(input, control.getBoolFalseTrue(0) ? 1 : 0, control.getBoolFalseTrue(1) ? 1 : 0);
            default -> new ControlValues(input, control.getInt32FalseTrue(0), control.getInt32FalseTrue(1));
        };
    }
}
