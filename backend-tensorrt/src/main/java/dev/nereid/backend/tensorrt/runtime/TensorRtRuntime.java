package dev.nereid.backend.tensorrt.runtime;

import dev.nereid.spi.BackendException;
import java.lang.foreign.MemorySegment;

/**
 * TensorRT. Safe for use by several threads; each has the context of the GPU as its current one when it calls.
 *
 * <p>Failures are {@link BackendException}s with the messages that TensorRT logged during the call.
 */
public interface TensorRtRuntime {
    /** Returns the version, such as {@code 10.6.0}. */
    String version();

    /**
     * Makes an engine, owned by the caller, of a plan.
     *
     * @param plan the content of a plan file, in native memory; not used after the call
     * @throws BackendException if the plan is of another version or for another device, or is none
     */
    Engine deserialize(MemorySegment plan);

    /** Builds the content of a plan file, for seconds to minutes; fails if the model cannot be parsed or built. */
    byte[] build(BuildRequest request);
}
