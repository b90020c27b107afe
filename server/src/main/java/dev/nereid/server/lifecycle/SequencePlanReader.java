package dev.nereid.server.lifecycle;

import static dev.nereid.repository.config.ConfigErrors.invalid;

import dev.nereid.api.InferenceException;
import dev.nereid.repository.DataFilePath;
import dev.nereid.repository.config.TensorSpecs;
import dev.nereid.scheduler.sequence.ControlValues;
import dev.nereid.scheduler.sequence.InitialState;
import dev.nereid.scheduler.sequence.SequencePlan;
import dev.nereid.spi.ControlInput;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.SequenceBatching;
import dev.nereid.spi.Shape;
import dev.nereid.spi.StateSpec;
import dev.nereid.spi.Tensor;
import inference.ModelConfig;
import inference.ModelSequenceBatching;
import inference.ModelSequenceBatching.Control;
import inference.ModelSequenceBatching.State;
import inference.ModelSequenceBatching.StrategyOldest;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
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

    /** Reads the values of states at the start of a sequence. Static functions only. */
    private static final class InitialStates {
        private static final int ALIGNMENT = 64;

        private InitialStates() {}

        /**
         * Returns the states of a model with their values.
         *
         * @param config a checked configuration
         * @param described the same states, as the backend sees them
         * @throws InferenceException {@link ErrorCode#INVALID_ARGUMENT} if a file is too short, {@link
         *     ErrorCode#INTERNAL} if it cannot be read, {@link ErrorCode#UNSUPPORTED} if it lies elsewhere
         */
        static List<InitialState> of(ModelConfig config, SequenceBatching described, Path directory) {
            List<InitialState> states = new ArrayList<>();
            for (StateSpec spec : described.states()) {
                State state = config.getSequenceBatching().getStateList().stream()
                        .filter(candidate -> candidate.getOutputName().equals(spec.outputName()))
                        .findFirst()
                        .orElseThrow();
                Shape dims = state.getInitialStateCount() == 0
                        ? ones(spec.dims())
                        : TensorSpecs.shape(
                                spec.inputName(), state.getInitialState(0).getDimsList());
                Shape shape = config.getMaxBatchSize() > 0 ? dims.prepend(1) : dims;
                MemorySegment value = content(state, spec, dims, directory);
                states.add(new InitialState(
                        spec, Tensor.of(spec.inputName(), spec.type(), shape, value, MemoryPlace.HOST)));
            }
            return states;
        }

        /** Without an initial value, a variable dimension is 1. */
        private static Shape ones(Shape dims) {
            long[] sizes = new long[dims.rank()];
            for (int i = 0; i < sizes.length; i++) {
                sizes[i] = Math.max(1, dims.dim(i));
            }
            return Shape.of(sizes);
        }

        private static MemorySegment content(State state, StateSpec spec, Shape dims, Path directory) {
            boolean texts = spec.type() == DataType.BYTES;
            long size =
                    texts ? Integer.BYTES * dims.elementCount() : dims.byteSize(spec.type()); // empty texts, or zeros
            if (state.getInitialStateCount() > 0 && state.getInitialState(0).hasDataFile()) {
                byte[] file = read(directory, state.getInitialState(0));
                if (file.length < size) {
                    throw invalid("initial_state setting expects " + size + " bytes, but the data provided from "
                            + state.getInitialState(0).getDataFile() + "only has " + file.length + " bytes.");
                }
                MemorySegment content = Arena.ofAuto().allocate(Math.max(1, file.length), ALIGNMENT);
                MemorySegment.copy(file, 0, content, ValueLayout.JAVA_BYTE, 0, file.length);
                long used = texts ? textBytes(content.asSlice(0, file.length), dims.elementCount(), state) : size;
                return content.asSlice(0, used).asReadOnly();
            }
            return Arena.ofAuto()
                    .allocate(Math.max(1, size), ALIGNMENT)
                    .asSlice(0, size)
                    .asReadOnly();
        }

        /** Returns the bytes of a number of texts at the beginning of a file. */
        private static long textBytes(MemorySegment content, long count, State state) {
            long at = 0;
            for (long i = 0; i < count; i++) {
                long left = content.byteSize() - at - Integer.BYTES;
                long length = left < 0 ? 0 : Integer.toUnsignedLong(content.get(ValueLayout.JAVA_INT_UNALIGNED, at));
                if (left < length) {
                    throw invalid("initial_state setting expects " + count + " strings with their lengths, but the data"
                            + " provided from " + state.getInitialState(0).getDataFile() + " only has " + i);
                }
                at += Integer.BYTES + length;
            }
            return at;
        }

        /**
         * Checks that the files of initial states are there, without reading them.
         *
         * @param config the completed configuration
         * @throws InferenceException as for {@link #of}, but for the length
         */
        static void checkFiles(ModelConfig config, Path directory) {
            for (State state : config.getSequenceBatching().getStateList()) {
                if (state.getInitialStateCount() > 0 && state.getInitialState(0).hasDataFile()) {
                    find(directory, state.getInitialState(0).getDataFile());
                }
            }
        }

        private static byte[] read(Path model, ModelSequenceBatching.InitialState initial) {
            String name = initial.getDataFile();
            try {
                return Files.readAllBytes(find(model, name));
            } catch (IOException e) {
                throw unreadable(name, "not readable");
            }
        }

        /** Finds a file. Devices and pipes are refused: to read them may never end. */
        private static Path find(Path model, String name) {
            Path directory = model.resolve("initial_state");
            Path path = DataFilePath.resolve(directory, name);
            try {
                Path file = DataFilePath.checkReal(directory, path, name);
                if (!Files.isRegularFile(file)) {
                    throw unreadable(name, "Not a file");
                }
                return file;
            } catch (IOException e) {
                throw unreadable(name, Files.exists(path) ? "not readable" : "No such file or directory");
            }
        }

        private static InferenceException unreadable(String name, String problem) {
            return new InferenceException(
                    ErrorCode.INTERNAL, "failed to open text file for read " + name + ": " + problem);
        }
    }
}
