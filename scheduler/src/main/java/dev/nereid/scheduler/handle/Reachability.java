package dev.nereid.scheduler.handle;

import static java.util.Objects.requireNonNull;

import dev.nereid.spi.Tensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * Detects when a plugin can reach no handle and no tensor of one request. Immutable; safe for use by any thread.
 *
 * <p>The handles of the plugin refer to it, and so do views of the tensors that they give. The server keeps no
 * reference to it, and none to a view; only while a rescheduled request waits for its next execution, it keeps the
 * sender, which refers to this. So its actions run when the plugin can no longer end anything or read any memory of the
 * request.
 */
public final class Reachability {
    private final Arena arena = Arena.ofAuto();

    public Reachability() {}

    /** Returns a tensor that keeps this reachable; the tensor itself for an array, or mapped memory of a client. */
    @SuppressWarnings("restricted") // of the same memory and size
    public Tensor view(Tensor tensor) {
        MemorySegment data = tensor.data();
        if (!data.isNative() || data.isMapped()) {
            return tensor;
        }
        return with(tensor, data.reinterpret(arena, _ -> requireNonNull(data))); // an automatic arena stays
    }

    /** Returns a tensor that the server may keep, since it does not keep this reachable. */
    @SuppressWarnings("restricted") // of the same memory and size
    Tensor withoutView(Tensor tensor) {
        MemorySegment data = tensor.data();
        return data.scope().equals(arena.scope()) ? with(tensor, data.reinterpret(Arena.global(), null)) : tensor;
    }

    private static Tensor with(Tensor tensor, MemorySegment data) {
        Tensor unnamed = Tensor.of(tensor.type(), tensor.shape(), data, tensor.place());
        Tensor view = tensor.name().map(unnamed::withName).orElse(unnamed);
        return tensor.fence().map(view::withFence).orElse(view);
    }

    /** Runs an action when this is not reachable any more. The action is short, and does not refer to this. */
    @SuppressWarnings("restricted") // a segment without bytes
    void whenUnreachable(Runnable action) {
        MemorySegment.NULL.reinterpret(0, arena, _ -> action.run());
    }
}
