package dev.nereid.api.memory;

import dev.nereid.api.InferenceException;
import java.nio.ByteBuffer;
import java.util.List;

/**
 * Registers memory that clients share with the server for their tensors. Safe for use by any thread.
 *
 * <p>Methods throw {@link InferenceException} with the texts that clients know. Opening a segment is a matter of
 * microseconds, so everything here may be called on an event loop.
 */
public interface SharedMemory {
    /**
     * A registered part of a POSIX shared memory segment. Immutable.
     *
     * @param name the client's name for it
     * @param key the name of the segment
     * @param offset where the part begins in the segment, in bytes
     * @param byteSize the size of the part
     */
    record Region(String name, String key, long offset, long byteSize) {}

    /**
     * A registered part of the memory of a graphics processor. Immutable.
     *
     * @param name the client's name for it
     * @param deviceId the number of the processor
     * @param byteSize the size of the part
     */
    record CudaRegion(String name, long deviceId, long byteSize) {}

    /** A part of a region that a call uses. Safe for use by any thread. */
    interface Lease extends TensorBuffer {
        /**
         * Takes note that the client is about to get its last response: from now on the lease keeps the region mapped,
         * but no longer registered. So a client that has its response finds the region unregistered. Does nothing if
         * it was called before, or if the lease was closed, which implies it.
         */
        void releaseRegistration();
    }

    /**
     * Checks that clients may share memory, before anything else of a registration is looked at.
     *
     * @throws InferenceException {@link dev.nereid.spi.ErrorCode#UNSUPPORTED} if they may not
     */
    default void checkAllowed() {}

    /**
     * Registers a part of a POSIX shared memory segment.
     *
     * @param name the client's name for it
     * @param key the name of the segment
     * @param offset where the part begins in the segment, in bytes; unsigned
     * @param byteSize the size of the part; unsigned
     * @throws InferenceException {@link dev.nereid.spi.ErrorCode#UNSUPPORTED} if clients may not share memory;
     *     {@link dev.nereid.spi.ErrorCode#ALREADY_EXISTS} if the name is taken; another code if the part cannot be had
     */
    void register(String name, String key, long offset, long byteSize);

    /**
     * Unregisters a region. It stays registered while requests use it that acquired their lease before and have not
     * {@linkplain Lease#releaseRegistration released the registration}: it is listed, its name is taken, and later
     * requests may use it, which do not prolong that. Its memory is unmapped after the last request of either kind. Does
     * nothing if there is no region of this name, or if it was unregistered before.
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
     * @throws InferenceException {@link dev.nereid.spi.ErrorCode#NOT_FOUND} if there is none of this name
     */
    Region region(String name);

    /**
     * Returns all regions.
     *
     * @return the regions, by name
     */
    List<Region> regions();

    /**
     * Takes part of a region for a call, which keeps it mapped.
     *
     * @param name the client's name for the region
     * @param offset where the part begins in the region, in bytes; unsigned
     * @param byteSize the size of the part; unsigned
     * @return the part, to be closed when the call has ended; what the client does with the memory meanwhile is up to
     *     it
     * @throws InferenceException {@link dev.nereid.spi.ErrorCode#NOT_FOUND} if there is no such region;
     *     {@link dev.nereid.spi.ErrorCode#INVALID_ARGUMENT} if the part does not lie in it, or if the segment has
     *     become too short for it
     */
    Lease lease(String name, long offset, long byteSize);

    /**
     * Registers memory of a graphics processor.
     *
     * @param name the client's name for it
     * @param handle the handle of the memory, as CUDA exports it
     * @param deviceId the number of the processor
     * @param byteSize the size of the memory
     * @throws InferenceException as {@link #register} does, or if the server has no such processor
     */
    void registerCuda(String name, ByteBuffer handle, long deviceId, long byteSize);

    /**
     * Unregisters memory of a graphics processor. Does nothing if there is none of this name.
     *
     * @param name the client's name for it
     * @throws InferenceException {@link dev.nereid.spi.ErrorCode#UNSUPPORTED} if clients may not share memory
     */
    void unregisterCuda(String name);

    /**
     * Unregisters all memory of graphics processors.
     *
     * @throws InferenceException {@link dev.nereid.spi.ErrorCode#UNSUPPORTED} if clients may not share memory
     */
    void unregisterAllCuda();

    /**
     * Returns a region in the memory of a graphics processor.
     *
     * @param name the client's name for it
     * @return the region
     * @throws InferenceException {@link dev.nereid.spi.ErrorCode#NOT_FOUND} if there is none of this name
     */
    CudaRegion cudaRegion(String name);

    /**
     * Returns all regions in the memory of graphics processors.
     *
     * @return the regions, by name
     */
    List<CudaRegion> cudaRegions();
}
