package dev.nereid.spi;

import static java.util.Objects.requireNonNull;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * A view of an n-dimensional array: type, shape and memory. Immutable as a view; the memory is not.
 *
 * <p>A tensor never owns its memory. Its provider defines how long it may be read and whether it may be written.
 * Elements lie in row-major order, little-endian ({@link DataType}); use the unaligned layouts of
 * {@link ValueLayout}, since inputs lie in the received messages.
 *
 * <p>Passing a tensor, in either direction, means that all writes to its memory have finished, work of a device
 * included, unless it has a {@link #fence()}. Tensors that the server passes lie in native memory that any thread may
 * use. Tensors that a backend passes to the server must lie in memory that any thread may use as well: a shared,
 * automatic or global arena, never a confined one, never a Java array.
 *
 * @since 1.0
 */
public final class Tensor {
    private static final ValueLayout.OfInt LENGTH = ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    private final DataType type;
    private final Shape shape;
    private final MemorySegment data;
    private final MemoryPlace place;
    private final @Nullable Fence fence;

    private Tensor(DataType type, Shape shape, MemorySegment data, MemoryPlace place, @Nullable Fence fence) {
        this.type = requireNonNull(type, "type");
        this.shape = requireNonNull(shape, "shape");
        this.data = requireNonNull(data, "data");
        this.place = requireNonNull(place, "place");
        this.fence = fence;
        checkConcrete(shape);
    }

    private static void checkConcrete(Shape shape) {
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
        Tensor tensor = new Tensor(type, shape, data, place, null);
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
        List<byte[]> encoded = new ArrayList<>(texts.size());
        for (String text : texts) {
            encoded.add(text.getBytes(StandardCharsets.UTF_8));
        }
        return ofByteStrings(shape, encoded);
    }

    /**
     * Creates a tensor of byte strings, in memory that the garbage collector frees.
     *
     * @param shape the dimensions
     * @param elements the elements in row-major order, which are copied
     * @return a tensor of {@link DataType#BYTES}
     * @throws IllegalArgumentException if a dimension is variable, or if the number of elements differs
     */
    public static Tensor ofByteStrings(Shape shape, List<byte[]> elements) {
        checkConcrete(shape);
        if (shape.elementCount() != elements.size()) {
            throw new IllegalArgumentException(
                    "elements: " + elements.size() + " (expected: " + shape.elementCount() + " for " + shape + ")");
        }
        long size = 0;
        for (byte[] element : elements) {
            size += Integer.BYTES + (long) element.length;
        }
        MemorySegment data = Arena.ofAuto().allocate(size);
        long at = 0;
        for (byte[] element : elements) {
            data.set(LENGTH, at, element.length);
            MemorySegment.copy(element, 0, data, ValueLayout.JAVA_BYTE, at + Integer.BYTES, element.length);
            at += Integer.BYTES + (long) element.length;
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
        List<String> texts = new ArrayList<>();
        for (byte[] element : byteStrings()) {
            texts.add(new String(element, StandardCharsets.UTF_8));
        }
        return texts;
    }

    /**
     * Reads the elements as byte strings.
     *
     * @return copies of the elements in row-major order
     * @throws IllegalStateException as {@link #strings}
     */
    public List<byte[]> byteStrings() {
        if (type != DataType.BYTES || !place.isHost()) {
            throw new IllegalStateException("tensor: " + this + " (expected: BYTES in memory of the host)");
        }
        List<byte[]> elements = new ArrayList<>();
        long at = 0;
        while (at < data.byteSize()) {
            long left = data.byteSize() - at - Integer.BYTES;
            long length = left < 0 ? -1 : Integer.toUnsignedLong(data.get(LENGTH, at));
            if (left < 0 || length > left) {
                throw new IllegalStateException(
                        "tensor: " + this + ": element " + elements.size() + " runs beyond the end of the memory");
            }
            elements.add(data.asSlice(at + Integer.BYTES, length).toArray(ValueLayout.JAVA_BYTE));
            at += Integer.BYTES + length;
        }
        return elements;
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
     * Returns the same elements in other dimensions. Place and fence stay.
     *
     * @param changed the dimensions, with as many elements
     * @return a tensor on the same memory
     * @throws IllegalArgumentException if the number of elements differs, or a dimension is variable
     */
    public Tensor withShape(Shape changed) {
        checkConcrete(changed);
        if (changed.elementCount() != shape.elementCount()) {
            throw new IllegalArgumentException(
                    "shape: " + changed + " (expected: " + shape.elementCount() + " elements, as " + shape + " has)");
        }
        return new Tensor(type, changed, data, place, fence);
    }

    /**
     * Returns the same tensor with a fence, in place of an earlier one. A tensor with a fence may be passed to the
     * server before the work has ended: its memory and the inputs of its request stay until then.
     *
     * @param added the work of a device that must end before the memory may be read
     * @return a tensor on the same memory
     */
    @Incubating
    public Tensor withFence(Fence added) {
        return new Tensor(type, shape, data, place, requireNonNull(added, "added"));
    }

    /**
     * Returns the work of a device that must end before the memory may be read.
     *
     * @return the work; empty for a tensor that may be read at once, as all that the server passes in memory of the
     *     host
     */
    @Incubating
    public Optional<Fence> fence() {
        return Optional.ofNullable(fence);
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
