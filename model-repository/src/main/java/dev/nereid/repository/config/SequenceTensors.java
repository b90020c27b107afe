package dev.nereid.repository.config;

import static dev.nereid.repository.config.ConfigErrors.invalid;

import dev.nereid.spi.ControlInput;
import dev.nereid.spi.DataType;
import dev.nereid.spi.SequenceBatching;
import dev.nereid.spi.StateSpec;
import inference.ModelConfig;
import inference.ModelSequenceBatching;
import inference.ModelSequenceBatching.Control;
import inference.ModelSequenceBatching.State;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;

/** Converts the sequence batching of a configuration to its description in the SPI. */
public final class SequenceTensors {
    private static final int FALSE_AND_TRUE = 2;
    private static final String LISTS = "'int32_false_true', 'fp32_false_true' or 'bool_false_true' for ";

    private SequenceTensors() {}

    /**
     * Returns the description; fails if the entry of a control or a state is wrong.
     *
     * @param maxIdle how long a sequence may have no request
     */
    public static SequenceBatching of(ModelConfig config, Duration maxIdle) {
        ModelSequenceBatching batching = config.getSequenceBatching();
        SequenceBatching described = SequenceBatching.of(
                batching.hasOldest() ? SequenceBatching.Strategy.OLDEST : SequenceBatching.Strategy.DIRECT, maxIdle);
        if (batching.getIterativeSequence()) {
            described = described.withIterative();
        }
        for (ModelSequenceBatching.ControlInput input : batching.getControlInputList()) {
            if (input.getName().isEmpty()) {
                throw invalid("sequence batching control tensor must have a name for " + config.getName());
            }
            for (Control control : input.getControlList()) {
                described =
                        described.with(new ControlInput(kind(config, control), input.getName(), type(config, control)));
            }
        }
        Set<String> inputs = new HashSet<>();
        Set<String> outputs = new HashSet<>();
        for (State state : batching.getStateList()) { // a name that comes again is ignored, as by the reference
            if (!inputs.contains(state.getInputName()) && !outputs.contains(state.getOutputName())) {
                described = described.with(of(state));
                inputs.add(state.getInputName());
                outputs.add(state.getOutputName());
            }
        }
        return described;
    }

    private static StateSpec of(State state) {
        String name = state.getInputName();
        StateSpec spec = StateSpec.of(
                name,
                state.getOutputName(),
                TensorSpecs.type(name, state.getDataType()),
                TensorSpecs.shape(name, state.getDimsList()));
        if (state.getUseGrowableMemory()) {
            return spec.withGrowableMemory();
        }
        return state.getUseSameBufferForInputOutput() ? spec.withSameBuffer() : spec;
    }

    private static ControlInput.Kind kind(ModelConfig config, Control control) {
        return switch (control.getKind()) {
            case CONTROL_SEQUENCE_START -> ControlInput.Kind.SEQUENCE_START;
            case CONTROL_SEQUENCE_READY -> ControlInput.Kind.SEQUENCE_READY;
            case CONTROL_SEQUENCE_END -> ControlInput.Kind.SEQUENCE_END;
            case CONTROL_SEQUENCE_CORRID -> ControlInput.Kind.SEQUENCE_CORRID;
            case UNRECOGNIZED ->
                throw invalid("unknown sequence batching control kind '" + control.getKindValue() + "' for "
                        + config.getName());
        };
    }

    /** Returns the type of a control: the type of its values for false and true, or the type of the id. */
    private static DataType type(ModelConfig config, Control control) {
        String end = control.getKind() + " for " + config.getName();
        List<Values> configured = Stream.of(
                        new Values(DataType.INT32, "int32_false_true", control.getInt32FalseTrueCount()),
                        new Values(DataType.FP32, "fp32_false_true", control.getFp32FalseTrueCount()),
                        new Values(DataType.BOOL, "bool_false_true", control.getBoolFalseTrueCount()))
                .filter(values -> values.count() > 0)
                .toList();
        if (control.getKind() == Control.Kind.CONTROL_SEQUENCE_CORRID) {
            if (!configured.isEmpty()) {
                throw invalid("sequence batching must not specify either " + LISTS + end);
            }
            return typeOfId(config, control);
        }
        if (configured.isEmpty()) {
            throw invalid("sequence batching must specify either " + LISTS + end);
        }
        if (configured.size() > 1) {
            throw invalid("sequence batching specifies more than one from 'int32_false_true', 'fp32_false_true' and"
                    + " 'bool_false_true' for " + end);
        }
        Values values = configured.getFirst();
        if (values.count() != FALSE_AND_TRUE) {
            throw invalid("sequence batching control '" + values.name() + "' must have exactly 2 entries for " + end);
        }
        return values.type();
    }

    private static DataType typeOfId(ModelConfig config, Control control) {
        return switch (control.getDataType()) {
            case TYPE_UINT64 -> DataType.UINT64;
            case TYPE_INT64 -> DataType.INT64;
            case TYPE_UINT32 -> DataType.UINT32;
            case TYPE_INT32 -> DataType.INT32;
            case TYPE_STRING -> DataType.BYTES;
            default ->
                throw invalid("unexpected data type for control " + control.getKind() + " for " + config.getName()
                        + ". Allowed data types are TYPE_UINT64, TYPE_INT64, TYPE_UINT32, TYPE_INT32 and TYPE_STRING");
        };
    }

    /**
     * One of the lists with the values for false and true.
     *
     * @param count how many values it has
     */
    private record Values(DataType type, String name, int count) {}
}
