package dev.nereid.spi;

/**
 * The new value of a state, computed for the next request of a sequence. Owned by the server, and confined as the
 * {@link Batch} that it belongs to. <em>Implemented by the server.</em>
 *
 * <p>It takes effect when the execution is finished, whether its client still waits or not, unless execution or request
 * failed; without a new value the present one stays. The values of {@linkplain InferenceRequest#isNullRequest() null
 * requests} and of a warm-up, which have no sequence, are dropped.
 *
 * <p>A value is written one way, once: a second call of any method throws a {@link BackendException} of
 * {@link ErrorCode#INTERNAL}.
 *
 * @since 1.0
 */
public interface SequenceState {
    /**
     * Allocates the value in memory of the server. The backend fills it before the execution is finished.
     *
     * @param type the type of its elements, that of the configuration; of fixed size
     * @param shape its dimensions, with the batch dimension if the model batches
     * @return a tensor to be written, aligned to 64 bytes, content undefined; for a state with one buffer for input and
     *     output ({@code use_same_buffer_for_input_output}) it begins with the present value, perhaps in its memory
     * @throws BackendException {@link ErrorCode#INTERNAL} if type or shape do not fit the configuration,
     *     {@link ErrorCode#UNAVAILABLE} if there is no memory
     */
    Tensor allocate(DataType type, Shape shape);

    /**
     * Allocates the value in memory of one place.
     *
     * @param type as of {@link #allocate(DataType, Shape)}
     * @param shape as there
     * @param place where the value lies, and is passed to the next execution
     * @return as there, in that place
     * @throws BackendException as there, and {@link ErrorCode#UNSUPPORTED} if the server has no memory there
     */
    Tensor allocate(DataType type, Shape shape, MemoryPlace place);

    /**
     * Names the work of a device that writes an allocated value. The execution may finish before the work has ended:
     * inputs and buffers stay until then. Without a fence the value is written when the execution is finished.
     *
     * @param fence the work that writes it
     * @throws BackendException {@link ErrorCode#UNSUPPORTED} if the server cannot wait for work of a device,
     *     {@link ErrorCode#INTERNAL} if no value was allocated
     */
    @Incubating
    default void fence(Fence fence) {
        throw new BackendException(ErrorCode.UNSUPPORTED, "state: fences are not available from this server");
    }

    /**
     * Allocates a value of byte strings in memory of the server.
     *
     * @param shape its dimensions, with the batch dimension if the model batches
     * @param byteSize the size of all elements together with their length prefixes, in bytes
     * @return a tensor of {@link DataType#BYTES} to be written, content undefined
     * @throws BackendException as {@link #allocate(DataType, Shape)}
     */
    Tensor allocateBytes(Shape shape, long byteSize);

    /**
     * Sets the value without a copy. It lies in memory of the backend, or in an output or input of the same request.
     *
     * @param tensor the value, not to be changed until {@code release} runs
     * @param release run exactly once, on any thread, when the server no longer needs the memory: after the next
     *     execution of the sequence, at its end, or when this method throws. Short, must not block; its exceptions are
     *     logged
     * @throws BackendException as {@link #allocate(DataType, Shape)}, or if the tensor lies in memory that other
     *     threads may not use
     */
    void put(Tensor tensor, Runnable release);

    /**
     * Sets the value in memory that needs no release. It is an output or input of the same request, or memory that
     * never changes and is freed by the garbage collector.
     *
     * @param tensor the value, as in {@link #put(Tensor, Runnable)}
     * @throws BackendException as {@link #put(Tensor, Runnable)}
     */
    default void put(Tensor tensor) {
        put(tensor, () -> {});
    }
}
