package dev.nereid.testkit.contract;

import dev.nereid.spi.ControlInput;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.SequenceBatching;
import dev.nereid.spi.Shape;
import dev.nereid.spi.StateSpec;
import dev.nereid.spi.Tensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * Additions of the server to the requests of sequences: control inputs, and states that begin with zeros. Immutable.
 *
 * @param values the contents of control inputs other than 0 and 1
 */
record ControlInputs(ModelSettings settings, Map<String, ControlValues> values) {
    private static final Sequence NONE = new Sequence(new Sequence.Id.Numeric(0), false, false);

    /** Adds what a request lacks. In a null request the control inputs are as from the server, whatever it has. */
    ContractExample complete(ContractExample example, boolean isNull) {
        Optional<SequenceBatching> sequences = settings.sequenceBatching();
        if (sequences.isEmpty()) {
            return example;
        }
        Map<String, Tensor> controls = new LinkedHashMap<>();
        Sequence position = isNull ? NONE : example.sequence().orElse(NONE);
        for (ControlInput control : sequences.get().controls()) {
            controls.put(control.name(), content(control, position, !isNull));
        }
        ContractExample controlled = isNull ? example.withInputs(controls) : example.withDefaults(controls);
        return controlled.withDefaults(zeros(sequences.get().states()));
    }

    private Tensor content(ControlInput control, Sequence position, boolean isReady) {
        return switch (control.kind()) {
            case SEQUENCE_START -> flag(control, position.start());
            case SEQUENCE_END -> flag(control, position.end());
            case SEQUENCE_READY -> flag(control, isReady);
            default -> id(control, position.id());
        };
    }

    private Tensor flag(ControlInput control, boolean value) {
        ControlValues configured = values.get(control.name());
        return configured != null ? configured.of(value) : number(control.type(), value ? 1 : 0);
    }

    private Tensor id(ControlInput control, Sequence.Id id) {
        if (control.type() == DataType.BYTES) {
            String text = id instanceof Sequence.Id.Text(String value) ? value : "";
            return Tensor.ofByteStrings(one(), List.of(text.getBytes(StandardCharsets.UTF_8)));
        }
        return number(control.type(), id instanceof Sequence.Id.Numeric(long value) ? value : 0);
    }

    private Tensor number(DataType type, long value) {
        MemorySegment data = Arena.ofAuto().allocate(Math.max(1, type.byteSize()), Long.BYTES);
        switch (type) {
            case FP32 -> data.set(ValueLayout.JAVA_FLOAT_UNALIGNED, 0, (float) value);
            case FP64 -> data.set(ValueLayout.JAVA_DOUBLE_UNALIGNED, 0, (double) value);
            case INT64, UINT64 -> data.set(ValueLayout.JAVA_LONG_UNALIGNED, 0, value);
            case INT32, UINT32 -> data.set(ValueLayout.JAVA_INT_UNALIGNED, 0, (int) value);
            case INT16, UINT16 -> data.set(ValueLayout.JAVA_SHORT_UNALIGNED, 0, (short) value);
            default -> data.set(ValueLayout.JAVA_BYTE, 0, (byte) value);
        }
        return Tensor.of(type, one(), data.asSlice(0, type.byteSize()));
    }

    private Shape one() {
        return settings.batches() ? Shape.of(1, 1) : Shape.of(1);
    }

    private Map<String, Tensor> zeros(List<StateSpec> states) {
        Map<String, Tensor> first = new LinkedHashMap<>();
        for (StateSpec state : states) {
            Shape shape = settings.batches() ? state.dims().prepend(1) : state.dims();
            if (shape.isConcrete() && state.type().isFixedSize()) {
                long size = shape.byteSize(state.type());
                MemorySegment data = Arena.ofAuto().allocate(Math.max(1, size), Long.BYTES);
                first.put(state.inputName(), Tensor.of(state.type(), shape, data.asSlice(0, size)));
            }
        }
        return first;
    }
}
