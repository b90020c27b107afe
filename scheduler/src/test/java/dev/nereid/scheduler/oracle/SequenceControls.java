package dev.nereid.scheduler.oracle;

import dev.nereid.api.NamedTensor;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.api.memory.TensorMemory;
import dev.nereid.scheduler.memory.ReferenceCountedMemory;
import dev.nereid.scheduler.sequence.ControlValues;
import dev.nereid.spi.ControlInput;
import dev.nereid.spi.DataType;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Makes the control inputs of requests. Immutable; the values of flags lie in memory that is never changed, and is freed
 * by the garbage collector.
 */
final class SequenceControls {
    private static final int ALIGNMENT = 64;

    /** The bits of the index of a list: which flags are true. */
    private static final int START = 1;

    private static final int END = 2;
    private static final int READY = 4;
    private static final int COMBINATIONS = 8;

    private final List<ControlValues> controls;
    private final Shape shape;

    /** The type of the id; {@code null} if no control is the id. */
    private final @Nullable DataType idType;

    /** The controls for all combinations of flags, with the id of no sequence. */
    private final List<List<NamedTensor>> lists = new ArrayList<>(COMBINATIONS);

    SequenceControls(List<ControlValues> controls, boolean batches) {
        this.controls = controls;
        this.shape = batches ? Shape.of(1, 1) : Shape.of(1);
        this.idType = controls.stream()
                .filter(SequenceControls::isId)
                .map(control -> control.input().type())
                .findFirst()
                .orElse(null);
        Arena arena = Arena.ofAuto();
        for (int flags = 0; flags < COMBINATIONS; flags++) {
            List<NamedTensor> list = new ArrayList<>(controls.size());
            for (ControlValues control : controls) {
                list.add(new NamedTensor(control.input().name(), value(control, flags, arena)));
            }
            lists.add(List.copyOf(list));
        }
    }

    private Tensor value(ControlValues control, int flags, Arena arena) {
        DataType type = control.input().type();
        MemorySegment data = arena.allocate(type.isFixedSize() ? type.byteSize() : Integer.BYTES, ALIGNMENT);
        if (!isId(control)) {
            boolean value = (flags & bit(control.input().kind())) != 0;
            int bits = value ? control.trueBits() : control.falseBits();
            if (type == DataType.BOOL) {
                data.set(ValueLayout.JAVA_BYTE, 0, (byte) bits);
            } else {
                data.set(ValueLayout.JAVA_INT, 0, bits);
            }
        }
        MemorySegment readOnly = data.asReadOnly();
        return Tensor.of(
                control.input().name(),
                type,
                shape,
                readOnly,
                MemoryPlace.HOST); // the id of no sequence is 0, or an empty text
    }

    private static int bit(ControlInput.Kind kind) {
        return switch (kind) {
            case SEQUENCE_START -> START;
            case SEQUENCE_END -> END;
            case SEQUENCE_READY -> READY;
            case SEQUENCE_CORRID -> 0;
        };
    }

    /**
     * Copies the id of a sequence to memory of the server; {@code null} if no control is the id.
     *
     * @throws dev.nereid.api.InferenceException if there is no memory
     */
    LiveSequence.@Nullable IdTensor id(Sequence.Id id, TensorMemory memory) {
        DataType type = idType;
        if (type == null) {
            return null;
        }
        byte[] text = type == DataType.BYTES ? text(id) : new byte[0];
        TensorBuffer buffer = memory.allocate(byteSize(type, text));
        Tensor tensor = write(id, type, text, buffer.segment());
        return new LiveSequence.IdTensor(tensor, ReferenceCountedMemory.of(buffer), withId(lists.get(READY), tensor));
    }

    private static int byteSize(DataType type, byte[] text) {
        return type == DataType.BYTES ? Integer.BYTES + text.length : type.byteSize();
    }

    private Tensor write(Sequence.Id id, DataType type, byte[] text, MemorySegment data) {
        if (type == DataType.BYTES) {
            data.set(ValueLayout.JAVA_INT_UNALIGNED, 0, text.length);
            MemorySegment.copy(text, 0, data, ValueLayout.JAVA_BYTE, Integer.BYTES, text.length);
        } else if (type.byteSize() == Long.BYTES) {
            data.set(ValueLayout.JAVA_LONG_UNALIGNED, 0, number(id));
        } else {
            data.set(ValueLayout.JAVA_INT_UNALIGNED, 0, (int) number(id));
        }
        return Tensor.of(controls.get(idIndex()).input().name(), type, shape, data, MemoryPlace.HOST);
    }

    /** Returns the controls of the first request of a sequence, in memory that the garbage collector frees. */
    List<NamedTensor> ofFirst(Sequence.Id id) {
        List<NamedTensor> flags = lists.get(READY | START);
        DataType type = idType;
        if (type == null) {
            return flags;
        }
        byte[] text = type == DataType.BYTES ? text(id) : new byte[0];
        MemorySegment data = Arena.ofAuto().allocate(byteSize(type, text), ALIGNMENT);
        return withId(flags, write(id, type, text, data));
    }

    /** Returns the text of an id. Requests with an id of another type than configured are refused before. */
    private static byte[] text(Sequence.Id id) {
        return switch (id) {
            case Sequence.Id.Text text -> text.value().getBytes(StandardCharsets.UTF_8);
            case Sequence.Id.Numeric number ->
                Long.toUnsignedString(number.value()).getBytes(StandardCharsets.UTF_8);
        };
    }

    private static long number(Sequence.Id id) {
        return id instanceof Sequence.Id.Numeric number ? number.value() : 0;
    }

    int size() {
        return controls.size();
    }

    List<NamedTensor> ofNone() {
        return lists.getFirst();
    }

    /**
     * Returns the controls of a request.
     *
     * @param id the id of its sequence; {@code null} if no control is the id
     */
    List<NamedTensor> of(boolean start, boolean end, LiveSequence.@Nullable IdTensor id) {
        if (id != null && !start && !end) {
            return id.between();
        }
        List<NamedTensor> list = lists.get(READY | (start ? START : 0) | (end ? END : 0));
        return id == null ? list : withId(list, id.tensor());
    }

    private List<NamedTensor> withId(List<NamedTensor> flags, Tensor id) {
        List<NamedTensor> own = new ArrayList<>(flags);
        own.set(idIndex(), new NamedTensor(own.get(idIndex()).name(), id));
        return own;
    }

    /** Returns the index of the id; below 0 if no control is the id. */
    int idIndex() {
        for (int i = 0; i < controls.size(); i++) {
            if (isId(controls.get(i))) {
                return i;
            }
        }
        return -1;
    }

    private static boolean isId(ControlValues control) {
        return control.input().kind() == ControlInput.Kind.SEQUENCE_CORRID;
    }
}
