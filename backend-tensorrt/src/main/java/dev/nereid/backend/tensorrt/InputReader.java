package dev.nereid.backend.tensorrt;

import dev.nereid.backend.tensorrt.Bindings.Binding;
import dev.nereid.backend.tensorrt.Bindings.Role;
import dev.nereid.backend.tensorrt.PreparedExecution.Copy;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.lang.foreign.ValueLayout;

/**
 * Takes the inputs of a batch: shape tensors to the host, states where they lie on the device, what lies on the device
 * there, the rest in pinned memory. Immutable.
 */
final class InputReader {
    private static final MemoryPlace PINNED = new MemoryPlace(MemoryPlace.Kind.PINNED, 0);

    private final Bindings bindings;
    private final MemoryPlace device;
    private final boolean copiesAll;

    /** Creates the reader; it copies inputs on the device too for graphs, which know addresses of buffers alone. */
    InputReader(Bindings bindings, MemoryPlace device, boolean copiesAll) {
        this.bindings = bindings;
        this.device = device;
        this.copiesAll = copiesAll;
    }

    void read(Batch batch, BufferSet buffers, PreparedExecution execution) {
        for (Binding binding : bindings.inputs()) {
            Tensor tensor = tensor(batch, binding);
            Shape shape = binding.tensor().unpadded(tensor.shape());
            execution.shapes.put(binding.name(), shape);
            if (binding.tensor().isShapeTensor()) {
                execution.limited.put(binding.name(), values(tensor));
                copyValues(tensor, buffers, binding);
                continue;
            }
            execution.limited.put(binding.name(), shape);
            if (tensor.place().equals(device)) {
                tensor.fence().ifPresent(execution.awaited::add);
                if (!copiesAll) {
                    execution.inPlace.put(binding.name(), tensor.data().address());
                    continue;
                }
            }
            execution.inputs.add(new Copy(binding, tensor));
        }
    }

    private Tensor tensor(Batch batch, Binding binding) {
        if (binding.tensor().isShapeTensor()) {
            return batch.gather(binding.name());
        }
        if (binding.role() == Role.STATE || allLieOnDevice(batch, binding.name())) {
            try {
                return batch.gather(binding.name(), device);
            } catch (BackendException e) {
                if (e.code() != ErrorCode.UNAVAILABLE) {
                    throw e;
                }
                // no memory is left there to join the requests in
            }
        }
        return batch.gather(binding.name(), PINNED);
    }

    private boolean allLieOnDevice(Batch batch, String input) {
        return batch.requests().stream()
                .allMatch(request -> request.input(input)
                        .filter(own -> own.place().equals(device))
                        .isPresent());
    }

    private static void copyValues(Tensor tensor, BufferSet buffers, Binding binding) {
        if (tensor.byteSize() > buffers.host(binding).byteSize()) {
            throw TensorRtErrors.invalid("input '" + binding.name() + "': " + tensor.byteSize()
                    + " bytes (expected: at most " + buffers.host(binding).byteSize() + ")");
        }
        buffers.host(binding).copyFrom(tensor.data());
    }

    private static Shape values(Tensor tensor) {
        long[] values = new long[Math.toIntExact(tensor.shape().elementCount())];
        for (int i = 0; i < values.length; i++) {
            values[i] = tensor.type() == DataType.INT64
                    ? tensor.data().getAtIndex(ValueLayout.JAVA_LONG_UNALIGNED, i)
                    : tensor.data().getAtIndex(ValueLayout.JAVA_INT_UNALIGNED, i);
            if (values[i] < 0) {
                throw TensorRtErrors.invalid("value " + i + " of a shape tensor: " + values[i] + " (expected: >= 0)");
            }
        }
        return Shape.of(values);
    }
}
