package dev.nereid.backend.onnx;

import dev.nereid.backend.onnx.ort.OrtProviders;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Fence;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.time.Duration;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Chooses where the inputs and outputs of an instance's batches lie. Immutable; used by the instance's thread.
 *
 * <p>On the CPU all lie in ordinary memory. On a GPU, an input that a request has there is passed from there; the others
 * stay on the host, since ONNX Runtime copies them itself. Outputs are written on the GPU if all inputs lie there, as
 * for the steps of an ensemble on one GPU and for clients with CUDA shared memory. Their outputs are probably needed
 * there as well; if not, the server copies them in place of ONNX Runtime. Outputs of other batches are written into pinned
 * memory, if the server has some.
 */
final class OnnxMemory {
    /** The limit on the wait for work that writes an input; the server's own limit is the same. */
    private static final Duration MAX_WAIT = Duration.ofMinutes(1);

    private final @Nullable MemoryPlace gpu;
    private final MemoryPlace host;

    OnnxMemory(Device device) {
        boolean isGpu = device.kind() == Device.Kind.GPU;
        gpu = isGpu ? new MemoryPlace(MemoryPlace.Kind.GPU, device.id()) : null;
        host = isGpu ? new MemoryPlace(MemoryPlace.Kind.PINNED, device.id()) : MemoryPlace.HOST;
    }

    /**
     * Returns an input of a batch, which may be read at once. It lies on the host, or on the instance's own GPU in memory
     * that is aligned as ONNX Runtime needs it.
     */
    Tensor gather(Batch batch, String input) {
        MemoryPlace device = gpu;
        if (device == null || !liesOn(device, batch, input)) {
            return batch.gather(input);
        }
        Tensor tensor;
        try {
            tensor = batch.gather(input, device);
        } catch (BackendException e) {
            if (e.code() != ErrorCode.UNAVAILABLE) {
                throw e;
            }
            return batch.gather(input); // no memory is left there to join the requests in
        }
        if (tensor.data().address() % OrtProviders.ALIGNMENT != 0) {
            return batch.gather(input); // a part of other memory, at an offset that kernels cannot read
        }
        await(input, tensor);
        return tensor;
    }

    /** Returns whether an input of at least one request lies in a place. Derived inputs lie on the host. */
    private static boolean liesOn(MemoryPlace place, Batch batch, String input) {
        for (InferenceRequest request : batch.requests()) {
            Optional<Tensor> tensor = request.input(input);
            if (tensor.isPresent() && tensor.get().place().equals(place)) {
                return true;
            }
        }
        return false;
    }

    private static void await(String input, Tensor tensor) {
        Optional<Fence> fence = tensor.fence();
        if (fence.isPresent() && !fence.get().await(MAX_WAIT)) {
            throw new BackendException(
                    ErrorCode.INTERNAL,
                    "input '" + input + "': work of " + tensor.place() + " did not end within " + MAX_WAIT.toSeconds()
                            + " s");
        }
    }

    /** Returns whether the requests of a batch take an output on the instance's GPU. */
    boolean takesOutput(Batch batch, String output) {
        MemoryPlace device = gpu;
        return device != null && batch.takesOutput(output, device);
    }

    /** Allocates an output on the instance's GPU if {@code onDevice} and it has memory left, otherwise on the host. */
    Tensor allocate(Batch batch, OnnxSignature.Output output, Shape shape, boolean onDevice) {
        MemoryPlace device = gpu;
        if (device != null && onDevice) {
            try {
                return batch.allocate(output.name(), output.type(), shape, device);
            } catch (BackendException e) {
                if (e.code() != ErrorCode.UNAVAILABLE && e.code() != ErrorCode.UNSUPPORTED) {
                    throw e;
                }
            }
        }
        return device == null
                ? batch.allocate(output.name(), output.type(), shape)
                : batch.allocate(output.name(), output.type(), shape, host);
    }
}
