package dev.nereid.walkthrough;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Fence;
import dev.nereid.spi.Tensor;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.Optional;

/** The calls of a native library that the backends need. All work runs later, in the order of the calls. */
interface Gpu {
    /** Starts a kernel that reads token numbers and writes vectors. */
    void embed(MemorySegment tokens, MemorySegment vectors);

    /** Starts a kernel that reads vectors and writes a score for each. */
    void score(MemorySegment vectors, MemorySegment scores);

    /** Makes later work wait for an event, which may be one of another stream. Returns at once. */
    void await(long event);

    /** Makes later work wait until a tensor is computed. Blocks only where its fence has no event. */
    default void await(Tensor tensor) {
        Optional<Fence> fence = tensor.fence();
        if (fence.isPresent()
                && !fence.get().withEvent(this::await)
                && !fence.get().await(Duration.ofMinutes(1))) {
            throw new BackendException(ErrorCode.UNAVAILABLE, "input: not computed within a minute");
        }
    }

    /** Records an event behind the work so far. */
    Fence record();
}
