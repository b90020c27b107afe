package dev.nereid.backend.tensorrt.runtime;

import dev.nereid.spi.Shape;
import java.util.List;

/**
 * An input or output of an engine. Immutable.
 *
 * @param type the name of its type at TensorRT: {@code kFLOAT}, {@code kHALF} and so on
 * @param shape its dimensions, {@link Shape#VARIABLE} for a dimension that a profile limits
 * @param isShapeTensor whether its values decide shapes; it lies on the host then
 * @param format the order of its elements in memory
 * @param ranges for an input, its limits in each profile; empty for an output
 */
public record EngineTensor(
        String name,
        boolean isInput,
        String type,
        Shape shape,
        boolean isShapeTensor,
        EngineFormat format,
        List<ProfileRange> ranges) {
    public EngineTensor {
        ranges = List.copyOf(ranges);
    }

    /** Returns the dimensions without padding of stored ones; these if they are not this tensor's padded shape. */
    public Shape unpadded(Shape stored) {
        int dimension = format.dimension();
        if (!format.hasVectors()
                || dimension >= stored.rank()
                || stored.dim(dimension) != format.padded(shape).dim(dimension)) {
            return stored;
        }
        long[] dims = stored.toArray();
        dims[dimension] = shape.dim(dimension);
        return Shape.of(dims);
    }
}
