package dev.nereid.backend.tensorrt.runtime;

import dev.nereid.spi.Shape;
import java.util.List;

/**
 * An input or output of an engine. Immutable.
 *
 * @param name its name
 * @param isInput whether it is an input
 * @param type the name of its type at TensorRT: {@code kFLOAT}, {@code kHALF} and so on
 * @param shape its dimensions, {@link Shape#VARIABLE} for those that a profile limits
 * @param isShapeTensor whether its values decide shapes; it lies on the host then
 * @param format the name of its format: {@code kLINEAR} for row-major order
 * @param ranges for an input, its limits in each profile; empty for an output
 */
public record EngineTensor(
        String name,
        boolean isInput,
        String type,
        Shape shape,
        boolean isShapeTensor,
        String format,
        List<ProfileRange> ranges) {
    /** Copies the components. */
    public EngineTensor {
        ranges = List.copyOf(ranges);
    }

    /** Returns whether the elements lie in row-major order. */
    public boolean isLinear() {
        return format.equals("kLINEAR");
    }
}
