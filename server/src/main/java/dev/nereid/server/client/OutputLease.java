package dev.nereid.server.client;

import dev.nereid.server.response.HeldLease;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.ref.Reference;

/**
 * A lease on an output of a response as its plugin has it. Safe for use by any thread.
 *
 * <p>It may be forgotten. Then the output is released, but never while a tensor or a memory segment of the response can be
 * read. The response may be released before.
 */
final class OutputLease implements Runnable {
    private final HeldLease held;

    /** Runs the registered action when this object is not reachable. */
    private final Arena reachability = Arena.ofAuto();

    /**
     * Creates the plugin's lease.
     *
     * @param response the scope of the response's outputs
     */
    @SuppressWarnings("restricted") // segments without bytes
    OutputLease(HeldLease held, Arena response) {
        this.held = held;
        MemorySegment.NULL.reinterpret(0, response, _ -> held.unreachable());
        MemorySegment.NULL.reinterpret(0, reachability, _ -> held.unreachable());
    }

    @Override
    public void run() {
        try {
            held.end();
        } finally {
            Reference.reachabilityFence(reachability);
            Reference.reachabilityFence(this);
        }
    }
}
