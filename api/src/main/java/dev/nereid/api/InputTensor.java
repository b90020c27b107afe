package dev.nereid.api;

import static java.util.Objects.requireNonNull;

import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Fence;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.Tensor;
import java.lang.foreign.MemorySegment;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * An input as received: its type, dimensions and size are unchecked. Immutable as a view of its memory.
 *
 * <p>Type, dimensions and size may contradict each other and the model; the server checks them against the model's
 * configuration before anything reads the memory, and responds with the text that clients know.
 */
public final class InputTensor {
    /** The limit on dimensions of an input over either protocol. It is far more than any model has. */
    public static final int MAX_DIMENSIONS = 255;

    private final String name;
    private final String datatype;
    private final long[] dims;
    private final MemorySegment data;
    private final MemoryPlace place;
    private final @Nullable Fence fence;

    private InputTensor(
            String name, String datatype, long[] dims, MemorySegment data, MemoryPlace place, @Nullable Fence fence) {
        this.name = requireNonNull(name, "name");
        this.datatype = requireNonNull(datatype, "datatype");
        this.dims = requireNonNull(dims, "dims");
        this.data = requireNonNull(data, "data");
        this.place = requireNonNull(place, "place");
        this.fence = fence;
    }

    /**
     * Creates an input as received.
     *
     * @param name the name of the input; any text
     * @param datatype the protocols' name of the element type; any text
     * @param dims the dimensions, with batch dimension if the model batches; any numbers. Not copied, since this is
     *     the hot path: do not change them
     * @param data the bytes that came with the input
     * @param place where {@code data} lies
     * @return the input
     */
    public static InputTensor of(String name, String datatype, long[] dims, MemorySegment data, MemoryPlace place) {
        return new InputTensor(name, datatype, dims, data, place, null);
    }

    /**
     * Creates an input from a tensor.
     *
     * @param name the name of the input
     * @param tensor its content, with batch dimension if the model batches; with its fence, if it has one
     * @return the input
     * @throws IllegalArgumentException if the tensor lies on the host, and has a fence
     */
    public static InputTensor of(String name, Tensor tensor) {
        if (tensor.place().isHost() && tensor.fence().isPresent()) {
            throw new IllegalArgumentException(
                    "tensor: " + tensor + " on the host with a fence (expected: without, after its work)");
        }
        return new InputTensor(
                name,
                tensor.type().name(),
                tensor.shape().toArray(),
                tensor.data(),
                tensor.place(),
                tensor.fence().orElse(null));
    }

    /**
     * Returns this input with other bytes.
     *
     * @param other the bytes, in the same place
     * @return an input of the same name, type and dimensions
     */
    public InputTensor withData(MemorySegment other) {
        return new InputTensor(name, datatype, dims, other, place, fence);
    }

    /**
     * Returns the name of the input.
     *
     * @return the name; not necessarily one that the model knows
     */
    public String name() {
        return name;
    }

    /**
     * Returns the name of the element type.
     *
     * @return the name; not necessarily that of a {@link DataType}
     */
    public String datatype() {
        return datatype;
    }

    /**
     * Returns the number of dimensions.
     *
     * @return 0 for a scalar
     */
    public int rank() {
        return dims.length;
    }

    /**
     * Returns one dimension.
     *
     * @param index from 0 (outermost) to {@code rank() - 1}
     * @return the number as received
     * @throws IndexOutOfBoundsException if there is no such dimension
     */
    public long dim(int index) {
        return dims[index];
    }

    /**
     * Returns the dimensions.
     *
     * @return a new array, outermost first
     */
    public long[] dims() {
        return dims.clone();
    }

    /**
     * Returns the bytes that came with the input.
     *
     * @return the bytes; readable if {@link #place()} is
     */
    public MemorySegment data() {
        return data;
    }

    /**
     * Returns where the bytes lie.
     *
     * @return the place
     */
    public MemoryPlace place() {
        return place;
    }

    /**
     * Returns the work of a device that must end before the bytes may be read.
     *
     * @return the work; empty for bytes that may be read at once, as all that clients send
     */
    public Optional<Fence> fence() {
        return Optional.ofNullable(fence);
    }

    /** Returns name, type and dimensions, for logs. */
    @Override
    public String toString() {
        return Quoted.text(name) + " " + Quoted.text(datatype) + " " + Quoted.dims(dims);
    }

    /**
     * Checks the number of dimensions. Front ends do so before they allocate memory for the next one.
     *
     * @param name the name of the input, for the error; empty if it is not known yet
     * @param rank the number of dimensions
     * @throws InferenceException with {@link ErrorCode#INVALID_ARGUMENT} if there are more than
     *     {@link #MAX_DIMENSIONS}
     */
    public static void checkRank(String name, int rank) {
        if (rank > MAX_DIMENSIONS) {
            throw new InferenceException(
                    ErrorCode.INVALID_ARGUMENT,
                    "shape: more than " + MAX_DIMENSIONS + " (expected: at most " + MAX_DIMENSIONS + ")"
                            + (name.isEmpty() ? "" : "; input '" + Quoted.text(name) + "'"));
        }
    }

    /**
     * Counts the elements of a shape as received.
     *
     * @param name the name of the input, for the error
     * @param dims the dimensions
     * @return the product of the dimensions, 1 for a scalar
     * @throws InferenceException with {@link ErrorCode#INVALID_ARGUMENT} and the protocols' text if a dimension is
     *     negative, or if the product does not fit a {@code long} whatever the order of the dimensions
     */
    public static long elementCount(String name, long... dims) {
        boolean empty = false;
        for (long dim : dims) {
            if (dim < 0) {
                throw invalidShape(name, dims, "contains one or more invalid dimensions");
            }
            empty |= dim == 0;
        }
        long product = 1;
        for (long dim : dims) {
            long factor = Math.max(dim, 1);
            if (product > Long.MAX_VALUE / factor) {
                throw invalidShape(
                        name, dims, "causes total element count to exceed maximum size of " + Long.MAX_VALUE);
            }
            product *= factor;
        }
        return empty ? 0 : product;
    }

    /**
     * Computes the byte size of a tensor of fixed-size elements. The shape is as received.
     *
     * @param name the name of the input, for the error
     * @param type the type of the elements
     * @param dims the dimensions
     * @return the size in bytes; 0 for {@link DataType#BYTES}, as its elements have no fixed size
     * @throws InferenceException with {@link ErrorCode#INVALID_ARGUMENT} and the protocols' text as
     *     {@link #elementCount}, or if the size does not fit a {@code long}
     */
    public static long byteSize(String name, DataType type, long... dims) {
        long elements = elementCount(name, dims);
        if (type.isFixedSize() && elements > Long.MAX_VALUE / type.byteSize()) {
            throw new InferenceException(
                    ErrorCode.INVALID_ARGUMENT,
                    "byte size overflow for input '" + Quoted.text(name) + "': element count (" + elements
                            + ") * data type size (" + type.byteSize() + ") exceeds maximum allowed size ("
                            + Long.MAX_VALUE + ")");
        }
        return elements * type.byteSize();
    }

    private static InferenceException invalidShape(String name, long[] dims, String problem) {
        return new InferenceException(
                ErrorCode.INVALID_ARGUMENT,
                "invalid shape for input '" + Quoted.text(name) + "': shape " + Quoted.dims(dims) + " " + problem);
    }
}
