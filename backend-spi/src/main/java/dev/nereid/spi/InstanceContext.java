package dev.nereid.spi;

/**
 * Name, device and host policy of an instance, and whether it takes work. Safe for use by any thread. <em>Implemented
 * by the server.</em>
 *
 * @since 1.0
 */
public interface InstanceContext {
    /**
     * Returns the name of the instance.
     *
     * @return the group's name and a number, for instance {@code resnet50_0_1}
     */
    String name();

    /**
     * Returns where the instance runs.
     *
     * @return the device
     */
    Device device();

    /**
     * Returns the name of the host policy that the instance's threads follow. The server keeps its own threads on the
     * processors of the policy, and so also threads that the backend starts while the instance is made or executed.
     *
     * @return the policy that the instance's group names, or else {@code cpu}, {@code gpu_0} and so on by the number of
     *     the processor, or {@code model}; empty from servers that have no policies
     */
    default String hostPolicy() {
        return "";
    }

    /**
     * Keeps work from the instance until it is {@linkplain #available available} again. A backend that runs models in
     * other processes calls this while it starts one. Any thread may call it at any time, also before
     * {@link Model#newInstance} returns; it never blocks.
     *
     * <p>Batches go to the other instances of the model. If none is available, requests wait; limits, timeouts and
     * cancellations apply to them as before, and a request that waits when the model is unloaded fails with
     * {@link ErrorCode#UNAVAILABLE}. Requests of sequences that the instance has begun wait for this instance. A batch
     * that the server has taken before is executed all the same, as are the samples of a warm-up, and
     * {@link ModelInstance#sequenceEnded} may be called. An unavailable instance is not ready, with this code and reason.
     * After the close of the instance the call has no effect.
     *
     * @param reason what clients and operators read, in one line; it replaces an earlier one
     */
    default void unavailable(String reason) {}

    /**
     * Says that the instance fails all work at once, until it is {@linkplain #available available} again. A backend that runs
     * models in other processes calls this when the restart of one was in vain: requests must not wait for the next one.
     *
     * <p>The instance takes batches, as an available one does, and {@link ModelInstance#execute} fails them with {@link
     * ErrorCode#UNAVAILABLE}. It is not ready, with this code and reason, without a call of {@link
     * ModelInstance#checkReady}; the server is, as with {@link #unavailable}. Any thread may call this, as that. By default
     * {@link #available}.
     *
     * @param reason what clients and operators read, in one line; it replaces an earlier one
     */
    default void failing(String reason) {
        available();
    }

    /**
     * Makes the instance take work again. Waiting requests go on at once. Has no effect if it is available. Any thread
     * may call this, as {@link #unavailable}.
     */
    default void available() {}

    /**
     * Allocates scratch memory of the instance. Never blocks, on any thread. The memory counts as tensor memory of the
     * server, and in its limit, until it is closed. The server frees and logs open memory after the close of the
     * instance, and when the result and its segments are no longer reachable: while native code or a device uses the
     * address, keep one of them.
     *
     * @param place where the memory is to lie; {@link AllocatedMemory#place()} says where it lies
     * @param byteSize the size needed, 0 or more
     * @return the memory, owned by the caller
     * @throws BackendException {@link ErrorCode#UNSUPPORTED} if the server has no memory there; memory of the host is
     *     always there. {@link ErrorCode#UNAVAILABLE} if none is left
     * @throws IllegalArgumentException if the size is negative
     */
    default AllocatedMemory allocate(MemoryPlace place, long byteSize) {
        throw new BackendException(ErrorCode.UNSUPPORTED, "memory of " + place + ": not available from this server");
    }
}
