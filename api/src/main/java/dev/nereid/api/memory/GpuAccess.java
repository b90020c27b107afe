package dev.nereid.api.memory;

import dev.nereid.spi.MemoryPlace;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Optional;

/**
 * The GPUs of the machine as the server uses them: their memory, pinned memory of the host, and memory that clients
 * share. Safe for use by any thread. A server closes the GPUs of its options at its end.
 */
public interface GpuAccess extends AutoCloseable {
    /** No GPU. */
    GpuAccess NONE = new NoGpus();

    /**
     * Returns the GPUs on which instances of models may run.
     *
     * @return their numbers in ascending order; empty for none
     */
    List<Integer> numbers();

    /**
     * Returns the identity of a GPU.
     *
     * @param gpu its number
     * @return {@code GPU-} and five groups of hexadecimal digits; empty for GPUs that the server does not use
     */
    Optional<String> uuid(int gpu);

    /**
     * Returns the memory of a GPU.
     *
     * @param place where it lies
     * @return its memory; empty for places of the host, and for GPUs that the server does not use
     */
    Optional<DeviceMemory> memory(MemoryPlace place);

    /**
     * Allocates pinned memory of the host. Never blocks.
     *
     * @param byteSize the size needed, 0 or more
     * @return a buffer of exactly this size, aligned to 64 bytes, content undefined, owned by the caller; empty if none
     *     is left, so that the caller uses ordinary memory
     */
    Optional<TensorBuffer> allocatePinned(long byteSize);

    /**
     * Returns how much pinned memory is in use.
     *
     * @return the bytes in use and all that were taken at the start; empty for none
     */
    Optional<DeviceMemory.Use> pinnedUse();

    /**
     * Opens device memory of another process.
     *
     * @param handle {@code cudaIpcMemHandle_t}, 64 bytes
     * @param gpu one of {@link #numbers}
     * @param byteSize the size that the client shares, from the start of the memory
     * @return the memory, owned by the caller
     * @throws dev.nereid.api.InferenceException {@link dev.nereid.spi.ErrorCode#INVALID_ARGUMENT} if the handle opens no
     *     memory, or the memory is smaller
     */
    Opened open(ByteBuffer handle, int gpu, long byteSize);

    /**
     * Returns why the process can no longer use a GPU. Does not query the GPUs: the state is at most a second old.
     *
     * @return the GPU and its failure, for logs; empty while all GPUs work
     */
    Optional<String> failure();

    /** Frees the memory, which is no longer used. Does nothing for a GPU that has failed, or when called again. */
    @Override
    void close();

    /** Device memory of another process. Safe for use by any thread. */
    interface Opened extends AutoCloseable {
        /**
         * Returns the memory.
         *
         * @return an address and a size for Java code
         */
        MemorySegment segment();

        /** Closes the memory, which nobody uses any more. Returns at once; the driver may take longer. */
        @Override
        void close();
    }
}
