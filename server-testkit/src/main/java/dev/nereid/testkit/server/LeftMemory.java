package dev.nereid.testkit.server;

import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.ObjLongConsumer;

/** The scratch memory that instances left allocated at their close. Safe for use by any thread. */
final class LeftMemory implements ObjLongConsumer<String> {
    private final Queue<String> instances = new ConcurrentLinkedQueue<>();

    @Override
    public void accept(String instance, long bytes) {
        instances.add(instance + ": " + bytes + " bytes");
    }

    /**
     * Fails if an instance left memory, or tensor memory is in use after the close of the server.
     *
     * @param forgotten what plugins have forgotten to release, and the server has released
     */
    void check(long bytesInUse, List<String> forgotten) {
        if (!forgotten.isEmpty()) {
            throw new AssertionError(String.join("; ", forgotten));
        }
        if (!instances.isEmpty()) {
            throw new AssertionError("scratch memory left by instances: " + List.copyOf(instances)
                    + " (expected: none, freed by ModelInstance.close)");
        }
        if (bytesInUse > 0) {
            throw new AssertionError("tensor memory in use after the close: " + bytesInUse + " bytes (expected: 0)");
        }
    }
}
