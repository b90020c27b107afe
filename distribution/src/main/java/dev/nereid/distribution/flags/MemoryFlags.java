package dev.nereid.distribution.flags;

import dev.nereid.server.memory.TensorMemoryBound;
import dev.nereid.server.options.MemoryOptions;
import java.util.OptionalLong;

/** Flags of tensor memory. Written by the command line reader, then only read. */
final class MemoryFlags {
    private OptionalLong poolBytes = OptionalLong.empty();
    private boolean poisonFreed;

    /** Adds the flags that set these fields. */
    void declare(Flags flags) {
        flags.add("--tensor-memory-pool-byte-size", FlagValue.BODY_BYTES, v -> poolBytes = OptionalLong.of(v))
                .help("How much memory inputs and outputs may take at a time, those of requests that are arriving"
                        + " included. Requests beyond that are refused with 503 or UNAVAILABLE and a retry time."
                        + " Default: half of the memory that the machine or the container has beside the heap, at"
                        + " least 67108864.");
        flags.add("--poison-freed-memory", FlagValue.TRUTH, poisonFreed, v -> poisonFreed = v)
                .help("Whether tensor memory is overwritten when it is released, so that backends that use it"
                        + " afterwards are detected. For debugging.");
    }

    /** Returns the limit of tensor memory. */
    TensorMemoryBound bound() {
        return poolBytes.isPresent() ? TensorMemoryBound.of(poolBytes.getAsLong()) : TensorMemoryBound.ofProcess();
    }

    /** Returns the options of tensor memory, without shared memory of clients. */
    MemoryOptions options() {
        return MemoryOptions.DEFAULT.withLimit(bound().bytes()).withPoisonFreed(poisonFreed);
    }
}
