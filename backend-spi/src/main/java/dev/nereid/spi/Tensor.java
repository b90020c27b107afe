package dev.nereid.spi;

import static java.util.Objects.requireNonNull;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * A view of an n-dimensional array: type, shape and memory. Immutable as a view; the memory is not.
 *
 * <p>A tensor never owns its memory. Its provider defines how long it may be read and whether it may be written.
 * Elements lie in row-major order, little-endian ({@link DataType}); use the unaligned layouts of
 * {@link ValueLayout}, since inputs lie in the received messages.
 *
 * <p>Passing a tensor, in either direction, means that all writes to its memory have finished, work of a device
 * included. Tensors that the server passes lie in native memory that any thread may use. Tensors that a
 * backend passes to the server must lie in memory that any thread may use as well: a shared, automatic or global arena,
 * never a confined one, never a Java array.
 */
public final class Tensor {
    private static final ValueLayout.OfInt LENGTH = ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    private final DataType type;
    private final Shape shape;
    private final MemorySegment data;
    private final MemoryPlace place;

    private Tensor(DataType type, Shape shape, MemorySegment data, MemoryPlace place) {
        this.type = requireNonNull(type, "type");
        this.shape = requireNonNull(shape, "shape");
        this.data = requireNonNull(data, "data");
        this.place = requireNonNull(place, "place");
        if (!shape.isConcrete()) {
            throw new IllegalArgumentException("shape: " + shape + " (expected: no variable dimension)");
        }
    }

    /**
     * Creates a tensor in ordinary memory.
     *
     * @param type the type of the elements
     * @param shape the dimensions, with the batch dimension first for models that batch
     * @param data the elements, all of them and nothing else
     * @return the tensor
     * @throws IllegalArgumentException if a dimension is variable, or if the memory has not the size that type and
     *     shape ask for. The framing of {@link DataType#BYTES} is not checked here: the server checks every input
     */
    public static Tensor of(DataType type, Shape shape, MemorySegment data) {
        return of(type, shape, data, MemoryPlace.HOST);
    }

    /**
     * Creates a tensor in memory of any kind.
     *
     * @param type the type of the elements
     * @param shape the dimensions, with the batch dimension first for models that batch
     * @param data the elements, all of them and nothing else
     * @param place where {@code data} lies
     * @return the tensor
     * @throws IllegalArgumentException as {@link #of(DataType, Shape, MemorySegment)}
     */
    public static Tensor of(DataType type, Shape shape, MemorySegment data, MemoryPlace place) {
        Tensor tensor = new Tensor(type, shape, data, place);
        if (type.isFixedSize() && data.byteSize() != shape.byteSize(type)) {
            throw new IllegalArgumentException("data: " + data.byteSize() + " bytes (expected: " + shape.byteSize(type)
                    + " bytes for " + type + " " + shape + ")");
        }
        return tensor;
    }

    /**
     * Creates a tensor of texts, in memory that the garbage collector frees.
     *
     * @param shape the dimensions
     * @param texts the elements in row-major order, encoded as UTF-8
     * @return a tensor of {@link DataType#BYTES}
     * @throws IllegalArgumentException if a dimension is variable, or if the number of texts differs
     */
    public static Tensor ofStrings(Shape shape, List<String> texts) {
        if (shape.elementCount() != texts.size()) {
            throw new IllegalArgumentException(
                    "texts: " + texts.size() + " (expected: " + shape.elementCount() + " for " + shape + ")");
        }
        List<byte[]> encoded = new ArrayList<>(texts.size());
        long size = 0;
        for (String text : texts) {
            byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
            encoded.add(bytes);
            size += Integer.BYTES + (long) bytes.length;
        }
        MemorySegment data = Arena.ofAuto().allocate(size);
        long at = 0;
        for (byte[] bytes : encoded) {
            data.set(LENGTH, at, bytes.length);
            MemorySegment.copy(bytes, 0, data, ValueLayout.JAVA_BYTE, at + Integer.BYTES, bytes.length);
            at += Integer.BYTES + (long) bytes.length;
        }
        return of(DataType.BYTES, shape, data);
    }

    /**
     * Reads the elements as texts.
     *
     * @return the elements in row-major order; bytes that are not UTF-8 become replacement characters
     * @throws IllegalStateException if the tensor is not of {@link DataType#BYTES}, not in memory that Java code may
     *     read, or if a length runs beyond the end of the memory
     */
    public List<String> strings() {
        if (type != DataType.BYTES || !place.isHost()) {
            throw new IllegalStateException("tensor: " + this + " (expected: BYTES in memory of the host)");
        }
        List<String> texts = new ArrayList<>();
        long at = 0;
        while (at < data.byteSize()) {
            long left = data.byteSize() - at - Integer.BYTES;
            long length = left < 0 ? -1 : Integer.toUnsignedLong(data.get(LENGTH, at));
            if (left < 0 || length > left) {
                throw new IllegalStateException(
                        "tensor: " + this + ": element " + texts.size() + " runs beyond the end of the memory");
            }
            byte[] bytes = data.asSlice(at + Integer.BYTES, length).toArray(ValueLayout.JAVA_BYTE);
            texts.add(new String(bytes, StandardCharsets.UTF_8));
            at += Integer.BYTES + length;
        }
        return texts;
    }

    /**
     * Returns the type of the elements.
     *
     * @return the type
     */
    public DataType type() {
        return type;
    }

    /**
     * Returns the dimensions, with the batch dimension first for models that batch.
     *
     * @return the dimensions; none is variable
     */
    public Shape shape() {
        return shape;
    }

    /**
     * Returns the memory of the elements.
     *
     * @return the elements, all of them and nothing else
     */
    public MemorySegment data() {
        return data;
    }

    /**
     * Returns where the elements lie.
     *
     * @return the place
     */
    public MemoryPlace place() {
        return place;
    }

    /**
     * Returns the size of the tensor in memory.
     *
     * @return the size in bytes
     */
    public long byteSize() {
        return data.byteSize();
    }

    /** Returns type and dimensions, never the content. */
    @Override
    public String toString() {
        return type + " " + shape;
    }
}
