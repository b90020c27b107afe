package dev.nereid.testkit;

import dev.nereid.api.InferenceException;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.SequenceState;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.lang.foreign.MemorySegment;
import java.util.Optional;
import java.util.Set;

/** A {@link SequenceState} that records its value. Confined to one thread at a time; {@link #close} frees the value. */
public final class FakeSequenceState implements SequenceState, AutoCloseable {
    private final String output;
    private final LeakCheckingMemory memory;
    private final Set<MemoryPlace> exhausted;
    private final Optional<Tensor> present;
    private Optional<Tensor> value = Optional.empty();
    private Optional<Runnable> release = Optional.empty();

    /**
     * Creates a state without a new value.
     *
     * @param output the name of the state's output
     * @param memory allocates memory for the value
     */
    public FakeSequenceState(String output, LeakCheckingMemory memory) {
        this(output, memory, Set.of(), Optional.empty());
    }

    /** Creates a state with one buffer: memory on the host that is allocated for its value begins with the present one. */
    FakeSequenceState(String output, LeakCheckingMemory memory, Tensor present) {
        this(output, memory, Set.of(), Optional.of(present));
    }

    /** Creates a state without a value, for which no memory is left in some places. */
    FakeSequenceState(String output, LeakCheckingMemory memory, Set<MemoryPlace> exhausted) {
        this(output, memory, exhausted, Optional.empty());
    }

    private FakeSequenceState(
            String output, LeakCheckingMemory memory, Set<MemoryPlace> exhausted, Optional<Tensor> present) {
        this.output = output;
        this.memory = memory;
        this.exhausted = exhausted;
        this.present = present;
    }

    /**
     * Returns the value that the backend wrote.
     *
     * @return the value, valid until the close; empty if the present one stays
     */
    public Optional<Tensor> value() {
        return value;
    }

    @Override
    public Tensor allocate(DataType type, Shape shape) {
        return allocate(type, shape, shape.byteSize(type), MemoryPlace.HOST);
    }

    @Override
    public Tensor allocate(DataType type, Shape shape, MemoryPlace place) {
        return allocate(type, shape, shape.byteSize(type), place);
    }

    @Override
    public Tensor allocateBytes(Shape shape, long byteSize) {
        return allocate(DataType.BYTES, shape, byteSize, MemoryPlace.HOST);
    }

    private Tensor allocate(DataType type, Shape shape, long byteSize, MemoryPlace place) {
        if (exhausted.contains(place)) {
            throw new BackendException(ErrorCode.UNAVAILABLE, place + ": no memory left (as the test says)");
        }
        try {
            TensorBuffer buffer = memory.allocate(byteSize);
            present.filter(_ -> type.isFixedSize())
                    .ifPresent(begin -> MemorySegment.copy(
                            begin.data(), 0, buffer.segment(), 0, Math.min(begin.byteSize(), byteSize)));
            Tensor tensor = Tensor.of(type, shape, buffer.segment(), place);
            put(tensor, buffer::close);
            return tensor;
        } catch (InferenceException e) {
            throw new BackendException(e.code(), e.publicMessage(), e);
        }
    }

    @Override
    public void put(Tensor tensor, Runnable after) {
        if (value.isPresent()) {
            after.run();
            throw new BackendException(ErrorCode.INTERNAL, "state '" + output + "': written twice");
        }
        value = Optional.of(tensor);
        release = Optional.of(after);
    }

    /** Frees the value. Later calls do nothing. */
    @Override
    public void close() {
        Optional<Runnable> once = release;
        release = Optional.empty();
        once.ifPresent(Runnable::run);
    }
}
