package dev.nereid.api.memory;

import dev.nereid.api.InferenceException;
import java.nio.ByteBuffer;
import java.util.List;

/**
 * Registers memory that clients share with the server for their tensors. Safe for use by any thread.
 *
 * <p>Methods throw {@link InferenceException} with the texts that clients know. Opening a segment takes microseconds, so
 * all methods but {@link #registerCuda} may be called on an event loop.
 */
public interface SharedMemory {
    /**
     * A registered part of a POSIX shared memory segment. Immutable.
     *
     * @param name the client's name for it
     * @param key the name of the segment
     * @param offset the offset of the part in the segment, in bytes
     * @param byteSize the size of the part
     */
    record Region(String name, String key, long offset, long byteSize) {}

    /**
     * A registered part of the memory of a GPU. Immutable.
     *
     * @param name the client's name for it
     * @param deviceId the number of the GPU
     * @param byteSize the size of the part
     */
    record CudaRegion(String name, long deviceId, long byteSize) {}

    /** A part of a region that a request uses. Safe for use by any thread. */
    interface Lease extends TensorBuffer {
        /**
         * Releases the registration before the client gets its final response. From now on the lease keeps the region
         * mapped, but no longer registered. So a client that has its response finds the region unregistered. Later
         * calls do nothing; closing the lease implies it.
         */
        void releaseRegistration();
    }

    /**
     * Checks that clients may share memory, before any other check of a registration.
     *
     * @throws InferenceException {@link dev.nereid.spi.ErrorCode#UNSUPPORTED} if they may not
     */
    default void checkAllowed() {}

    /**
     * Registers a part of a POSIX shared memory segment.
     *
     * @param name the client's name for it
     * @param key the name of the segment
     * @param offset the offset of the part in the segment, in bytes; unsigned
     * @param byteSize the size of the part; unsigned
     * @throws InferenceException {@link dev.nereid.spi.ErrorCode#UNSUPPORTED} if clients may not share memory;
     *     {@link dev.nereid.spi.ErrorCode#ALREADY_EXISTS} if the name is taken; another code if the part cannot be mapped
     */
    void register(String name, String key, long offset, long byteSize);

    /**
     * Unregisters a region. Requests that use it continue: until all leases from before {@linkplain
     * Lease#releaseRegistration release their registration} it stays registered, that is, it is listed, its name is
     * taken, and later requests may use it, which do not prolong that. Its memory is unmapped after the last lease of
     * either kind. Does nothing if there is no region of this name, or if it was unregistered before.
     *
     * @param name the client's name for it
     * @throws InferenceException {@link dev.nereid.spi.ErrorCode#UNSUPPORTED} if clients may not share memory
     */
    void unregister(String name);

    /**
     * Unregisters all regions, as {@link #unregister} does.
     *
     * @throws InferenceException {@link dev.nereid.spi.ErrorCode#UNSUPPORTED} if clients may not share memory
     */
    void unregisterAll();

    /**
     * Returns a region.
     *
     * @param name the client's name for it
     * @return the region
     * @throws InferenceException {@link dev.nereid.spi.ErrorCode#NOT_FOUND} if there is no region of this name
     */
    Region region(String name);

    /**
     * Returns all regions.
     *
     * @return the regions, by name
     */
    List<Region> regions();

    /**
     * Leases part of a region for a request; the lease keeps it mapped.
     *
     * @param name the client's name for the region
     * @param offset the offset of the part in the region, in bytes; unsigned
     * @param byteSize the size of the part; unsigned
     * @return the part, to be closed when the request has ended; the client may change its content at any time
     * @throws InferenceException {@link dev.nereid.spi.ErrorCode#NOT_FOUND} if there is no such region;
     *     {@link dev.nereid.spi.ErrorCode#INVALID_ARGUMENT} if the part does not lie in it, or if the segment has
     *     become too short for it
     */
    Lease lease(String name, long offset, long byteSize);

    /**
     * Registers memory of a GPU. Takes milliseconds, and as long as a kernel that runs: not to be called on an event loop.
     *
     * @param name the client's name for it
     * @param handle the handle of the memory, as CUDA exports it
     * @param deviceId the number of the GPU
     * @param byteSize the size of the memory
     * @throws InferenceException as {@link #register} does, or if the server has no such GPU
     */
    void registerCuda(String name, ByteBuffer handle, long deviceId, long byteSize);

    /**
     * Unregisters memory of a GPU. Does nothing if there is no region of this name.
     *
     * @param name the client's name for it
     * @throws InferenceException {@link dev.nereid.spi.ErrorCode#UNSUPPORTED} if clients may not share memory
     */
    void unregisterCuda(String name);

    /**
     * Unregisters all memory of GPUs.
     *
     * @throws InferenceException {@link dev.nereid.spi.ErrorCode#UNSUPPORTED} if clients may not share memory
     */
    void unregisterAllCuda();

    /**
     * Returns a region in the memory of a GPU.
     *
     * @param name the client's name for it
     * @return the region
     * @throws InferenceException {@link dev.nereid.spi.ErrorCode#NOT_FOUND} if there is no region of this name
     */
    CudaRegion cudaRegion(String name);

    /**
     * Returns all regions in the memory of GPUs.
     *
     * @return the regions, by name
     */
    List<CudaRegion> cudaRegions();
}
