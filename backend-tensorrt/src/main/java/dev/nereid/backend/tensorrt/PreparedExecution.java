package dev.nereid.backend.tensorrt;

import dev.nereid.backend.tensorrt.Bindings.Binding;
import dev.nereid.spi.Fence;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/** Tensors of one execution before it is enqueued. Confined to the instance's thread. */
final class PreparedExecution {
    /** A copy between a tensor of the server, of the host or on the device, and the buffer of a binding. */
    record Copy(Binding binding, Tensor tensor) {}

    /** Of each input its shape, or for a shape tensor its values; what profiles limit. */
    final Map<String, Shape> limited = new LinkedHashMap<>();

    /** The shapes of the inputs. */
    final Map<String, Shape> shapes = new LinkedHashMap<>();

    /** Where the tensors lie that are used in place. */
    final Map<String, Long> inPlace = new LinkedHashMap<>();

    final List<Copy> inputs = new ArrayList<>();
    final List<Copy> outputs = new ArrayList<>();

    /** The work that writes inputs on the device, which must end first. */
    final List<Fence> awaited = new ArrayList<>();

    /** {@code true} if the outputs stay on the device, so that they are passed on before they are written. */
    boolean passedOn;

    Shape shape(Binding input) {
        return Objects.requireNonNull(shapes.get(input.name()), "shape");
    }

    /** Copies the outputs that TensorRT has written on the host. */
    void copyShapeTensors(BufferSet buffers) {
        for (Copy output : outputs) {
            if (output.binding().tensor().isShapeTensor()) {
                output.tensor()
                        .data()
                        .copyFrom(buffers.host(output.binding())
                                .asSlice(0, output.tensor().byteSize()));
            }
        }
    }
}
