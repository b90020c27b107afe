package dev.nereid.spi;

import static java.util.Objects.requireNonNull;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
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
 * <p>Inputs, and outputs of other models, have a {@link #name()}, which errors name. Methods that read elements copy
 * them into a Java array, and read every type with values that the array represents exactly, and UINT64 as the bits of
 * {@code long}. They throw {@link IllegalStateException} for a tensor that is not in memory of the host or larger than
 * a Java array: both are mistakes of the plugin. Another type is a mistake of the request or the configuration, and the
 * client receives the error.
 *
 * @since 1.0
 */
public final class Tensor {
    private final DataType type;
    private final Shape shape;
    private final MemorySegment data;
    private final MemoryPlace place;
    private final @Nullable Fence fence;
    private final @Nullable String name;

    private Tensor(
            DataType type,
            Shape shape,
            MemorySegment data,
            MemoryPlace place,
            @Nullable Fence fence,
            @Nullable String name) {
        this.type = requireNonNull(type, "type");
        this.shape = requireNonNull(shape, "shape");
        this.data = requireNonNull(data, "data");
        this.place = requireNonNull(place, "place");
        this.fence = fence;
        this.name = name;
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
        return checked(new Tensor(type, shape, data, place, null, null));
    }

    /**
     * Creates a tensor with a name, in memory of any kind.
     *
     * @param name the name, as of {@link #withName}
     * @param type the type of the elements
     * @param shape the dimensions, with the batch dimension first for models that batch
     * @param data the elements, all of them and nothing else
     * @param place where {@code data} lies
     * @return the tensor
     * @throws IllegalArgumentException as {@link #of(DataType, Shape, MemorySegment)}
     */
    public static Tensor of(String name, DataType type, Shape shape, MemorySegment data, MemoryPlace place) {
        return checked(new Tensor(type, shape, data, place, null, requireNonNull(name, "name")));
    }

    private static Tensor checked(Tensor tensor) {
        DataType type = tensor.type;
        Shape shape = tensor.shape;
        MemorySegment data = tensor.data;
        if (type.isFixedSize() && data.byteSize() != shape.byteSize(type)) {
            throw new IllegalArgumentException("data: " + data.byteSize() + " bytes (expected: " + shape.byteSize(type)
                    + " bytes for " + type + " " + shape + ")");
        }
        return tensor;
    }

    /**
     * Creates a tensor of {@link DataType#FP32}, in memory that the garbage collector frees.
     *
     * @param shape the dimensions
     * @param values the elements in row-major order, which are copied
     * @return the tensor
     * @throws IllegalArgumentException if a dimension is variable, or if the number of values differs
     */
    public static Tensor ofFloats(Shape shape, float... values) {
        Tensor tensor = allocate(DataType.FP32, shape, values.length);
        MemorySegment.copy(values, 0, tensor.data, TensorElements.FLOAT, 0, values.length);
        return tensor;
    }

    /**
     * Creates a tensor of {@link DataType#FP64}, in memory that the garbage collector frees.
     *
     * @param shape the dimensions
     * @param values the elements in row-major order, which are copied
     * @return the tensor
     * @throws IllegalArgumentException if a dimension is variable, or if the number of values differs
     */
    public static Tensor ofDoubles(Shape shape, double... values) {
        Tensor tensor = allocate(DataType.FP64, shape, values.length);
        MemorySegment.copy(values, 0, tensor.data, TensorElements.DOUBLE, 0, values.length);
        return tensor;
    }

    /**
     * Creates a tensor of {@link DataType#INT32}, in memory that the garbage collector frees.
     *
     * @param shape the dimensions
     * @param values the elements in row-major order, which are copied
     * @return the tensor
     * @throws IllegalArgumentException if a dimension is variable, or if the number of values differs
     */
    public static Tensor ofInts(Shape shape, int... values) {
        Tensor tensor = allocate(DataType.INT32, shape, values.length);
        MemorySegment.copy(values, 0, tensor.data, TensorElements.INT, 0, values.length);
        return tensor;
    }

    /**
     * Creates a tensor of {@link DataType#INT64}, in memory that the garbage collector frees.
     *
     * @param shape the dimensions
     * @param values the elements in row-major order, which are copied
     * @return the tensor
     * @throws IllegalArgumentException if a dimension is variable, or if the number of values differs
     */
    public static Tensor ofLongs(Shape shape, long... values) {
        Tensor tensor = allocate(DataType.INT64, shape, values.length);
        MemorySegment.copy(values, 0, tensor.data, TensorElements.LONG, 0, values.length);
        return tensor;
    }

    private static Tensor allocate(DataType type, Shape shape, int values) {
        checkConcrete(shape);
        TensorElements.checkCount("values", values, shape);
        return of(type, shape, Arena.ofAuto().allocate(shape.byteSize(type)));
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
        return ofByteStrings(shape, TensorElements.encode(texts));
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
        TensorElements.checkCount("elements", elements.size(), shape);
        MemorySegment data = Arena.ofAuto().allocate(TensorElements.framedSize(elements));
        TensorElements.frame(elements, data);
        return of(DataType.BYTES, shape, data);
    }

    /**
     * Reads the elements as {@code float}.
     *
     * @return copies of the elements in row-major order; 0 or 1 for {@link DataType#BOOL}
     * @throws BackendException {@link ErrorCode#INVALID_ARGUMENT} if the tensor is not of {@link DataType#FP32},
     *     {@link DataType#FP16}, {@link DataType#BF16}, {@link DataType#BOOL} or an integer of 8 or 16 bits
     * @throws IllegalStateException if the tensor is not in memory that Java code may read, or larger than a Java array
     */
    public float[] floats() {
        return TensorElements.floats(this);
    }

    /**
     * Reads the elements as {@code double}.
     *
     * @return copies of the elements in row-major order; 0 or 1 for {@link DataType#BOOL}
     * @throws BackendException {@link ErrorCode#INVALID_ARGUMENT} if the tensor is of {@link DataType#INT64},
     *     {@link DataType#UINT64} or {@link DataType#BYTES}
     * @throws IllegalStateException as {@link #floats}
     */
    public double[] doubles() {
        return TensorElements.doubles(this);
    }

    /**
     * Reads the elements as {@code int}.
     *
     * @return copies of the elements in row-major order; 0 or 1 for {@link DataType#BOOL}
     * @throws BackendException {@link ErrorCode#INVALID_ARGUMENT} if the tensor is not of {@link DataType#INT32},
     *     {@link DataType#BOOL} or an integer of 8 or 16 bits
     * @throws IllegalStateException as {@link #floats}
     */
    public int[] ints() {
        return TensorElements.ints(this);
    }

    /**
     * Reads the elements as {@code long}.
     *
     * @return copies of the elements in row-major order; 0 or 1 for {@link DataType#BOOL}; elements of
     *     {@link DataType#UINT64} are unsigned, as of {@link Long#toUnsignedString(long)}
     * @throws BackendException {@link ErrorCode#INVALID_ARGUMENT} unless the tensor is of an integer type or of
     *     {@link DataType#BOOL}
     * @throws IllegalStateException as {@link #floats}
     */
    public long[] longs() {
        return TensorElements.longs(this);
    }

    /**
     * Reads the elements as texts.
     *
     * @return the elements in row-major order; bytes that are not UTF-8 become replacement characters
     * @throws BackendException {@link ErrorCode#INVALID_ARGUMENT} if the tensor is not of {@link DataType#BYTES}
     * @throws IllegalStateException if the tensor is not in memory that Java code may read, if a length runs beyond the end
     *     of the memory, or if the elements would take more than a quarter of the largest heap
     */
    public List<String> strings() {
        return TensorElements.strings(this);
    }

    /**
     * Reads the elements as byte strings.
     *
     * @return copies of the elements in row-major order
     * @throws BackendException as {@link #strings}
     * @throws IllegalStateException as {@link #strings}
     */
    public List<byte[]> byteStrings() {
        return TensorElements.byteStrings(this);
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
     * Returns the same elements in other dimensions. Place, fence and name stay.
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
        return new Tensor(type, changed, data, place, fence, name);
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
        return new Tensor(type, shape, data, place, requireNonNull(added, "added"), name);
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
     * Returns the same tensor with a name, in place of an earlier one.
     *
     * @param newName the name of an input or output, by which errors name the tensor
     * @return a tensor on the same memory; this one if it has that name
     */
    public Tensor withName(String newName) {
        return newName.equals(name) ? this : new Tensor(type, shape, data, place, fence, newName);
    }

    /**
     * Returns the name of the tensor.
     *
     * @return the name of the input, or of the output of another model; empty for a tensor that was made without a name
     */
    public Optional<String> name() {
        return Optional.ofNullable(name);
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
