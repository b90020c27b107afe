package dev.nereid.scheduler.handle;

import static java.util.Objects.requireNonNull;

import dev.nereid.spi.Tensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * The life of what a plugin has of one request: its handles, and views of the tensors that they give. Immutable; safe for
 * use by any thread.
 *
 * <p>The server keeps no reference to it, and none to a view; only while a rescheduled request waits for its next execution,
 * it keeps the sender, which refers to this. So its actions run when the plugin can neither end anything nor read any memory
 * of the request.
 */
public final class Reachability {
    private final Arena arena = Arena.ofAuto();

    /** Creates the life of a request that its plugin gets. */
    public Reachability() {}

    /**
     * Returns a tensor that keeps this reachable.
     *
     * @param tensor a tensor of the server
     * @return the same memory; the tensor itself if its memory is an array, or mapped memory of a client
     */
    @SuppressWarnings("restricted") // of the same memory and size
    public Tensor view(Tensor tensor) {
        MemorySegment data = tensor.data();
        if (!data.isNative() || data.isMapped()) {
            return tensor;
        }
        return with(tensor, data.reinterpret(arena, _ -> requireNonNull(data))); // an automatic arena stays
    }

    /**
     * Returns a tensor that the server may keep.
     *
     * @param tensor a tensor of the plugin
     * @return one that does not keep this reachable
     */
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

    /** Has an action run when this is not reachable any more. It is short, and does not refer to this. */
    @SuppressWarnings("restricted") // a segment without bytes
    void whenUnreachable(Runnable action) {
        MemorySegment.NULL.reinterpret(0, arena, _ -> action.run());
    }
}
