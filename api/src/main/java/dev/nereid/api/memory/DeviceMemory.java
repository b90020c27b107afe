package dev.nereid.api.memory;

import dev.nereid.api.InferenceException;
import dev.nereid.spi.MemoryPlace;
import java.lang.foreign.MemorySegment;
import java.util.Optional;

/**
 * The memory of one place that Java code cannot access, and the copies between it and the host. Safe for use by any
 * thread.
 */
public interface DeviceMemory {
    /**
     * Returns where the memory lies.
     *
     * @return the place, which is not one of the host
     */
    MemoryPlace place();

    /**
     * Allocates a buffer.
     *
     * @param byteSize the size needed, 0 or more
     * @return a buffer of exactly this size, aligned to 256 bytes, with every byte 0, since foreign code may fill it only
     *     in part; an address and a size for Java code; owned by the caller
     * @throws InferenceException with {@link dev.nereid.spi.ErrorCode#UNAVAILABLE} if there is no memory
     */
    TensorBuffer allocate(long byteSize);

    /**
     * Copies to the host. Returns when the copy is made.
     *
     * @param from memory in this place, of any owner, without unfinished work
     * @param to memory of the host of the same size, not of a client: native code writes to it
     * @throws InferenceException if the device failed
     */
    void copyToHost(MemorySegment from, MemorySegment to);

    /**
     * Copies from the host. Returns when the copy is made.
     *
     * @param from memory of the host, not of a client: native code reads it
     * @param to memory in this place of the same size, of any owner
     * @throws InferenceException if the device failed
     */
    void copyFromHost(MemorySegment from, MemorySegment to);

    /**
     * Copies within the place. Returns when the copy is made.
     *
     * @param from memory in this place, of any owner, without unfinished work
     * @param to other memory in this place of the same size, of any owner
     * @throws InferenceException if the device failed
     */
    void copy(MemorySegment from, MemorySegment to);

    /**
     * Fills memory in this place with zeros.
     *
     * @param memory memory in this place
     * @throws InferenceException if the device failed
     */
    void clear(MemorySegment memory);

    /**
     * Copies memory of another device without the host in between, where this device can.
     *
     * @param source the memory of the other device
     * @param from memory of the other device
     * @param to memory in this place of the same size
     * @return {@code false} if this device cannot, and nothing was copied
     * @throws InferenceException if a device failed
     */
    boolean copyFrom(DeviceMemory source, MemorySegment from, MemorySegment to);

    /**
     * Returns why the process can no longer use the device. Does not query the device: the state is at most a second
     * old.
     *
     * @return the failure, with what to do; empty while the device works
     */
    Optional<String> failure();

    /**
     * Returns how much of all memory of the device is in use, by whatever process.
     *
     * @return the use at this moment
     * @throws InferenceException if the device failed
     */
    Use use();

    /**
     * The use of the memory of a device.
     *
     * @param usedBytes the bytes in use
     * @param totalBytes all bytes
     */
    record Use(long usedBytes, long totalBytes) {}
}
