package dev.nereid.spi;

import static java.util.Objects.requireNonNull;

import java.lang.foreign.MemorySegment;

/**
 * A view of an n-dimensional array: a type, a shape, and the memory that holds the elements. Immutable as a view; the
 * memory is not.
 *
 * <p>A tensor never owns its memory. Whoever hands one out says how long it may be read and whether it may be written.
 * Elements lie in row-major order, little-endian ({@link DataType}); use the unaligned layouts of
 * {@link java.lang.foreign.ValueLayout}, since inputs lie where they came off the network.
 *
 * @param type the type of the elements
 * @param shape the dimensions, with the batch dimension first for models that batch; concrete
 * @param data the elements, all of them and nothing else
 * @param place where {@code data} lies
 */
public record Tensor(DataType type, Shape shape, MemorySegment data, MemoryPlace place) {
    /**
     * Checks that the memory has the size that type and shape ask for. The framing of {@link DataType#BYTES} is not
     * checked here: the server checks it for every input.
     *
     * @throws IllegalArgumentException if a dimension is variable or the sizes differ
     */
    public Tensor {
        requireNonNull(type, "type");
        requireNonNull(shape, "shape");
        requireNonNull(data, "data");
        requireNonNull(place, "place");
        if (type.isFixedSize()) {
            if (!shape.isConcrete()) {
                throw new IllegalArgumentException("shape: " + shape + " (expected: no variable dimension)");
            }
            if (data.byteSize() != shape.byteSize(type)) {
                throw new IllegalArgumentException("data: " + data.byteSize() + " bytes (expected: "
                        + shape.byteSize(type) + " bytes for " + type + " " + shape + ")");
            }
        }
    }

    /**
     * Creates a tensor in ordinary memory.
     *
     * @param type the type of the elements
     * @param shape the dimensions
     * @param data the elements
     * @return the tensor
     * @throws IllegalArgumentException as the constructor
     */
    public static Tensor of(DataType type, Shape shape, MemorySegment data) {
        return new Tensor(type, shape, data, MemoryPlace.HOST);
    }

    /**
     * Returns the size of the tensor in memory.
     *
     * @return the size in bytes
     */
    public long byteSize() {
        return data.byteSize();
    }
}
