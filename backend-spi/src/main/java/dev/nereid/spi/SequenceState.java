package dev.nereid.spi;

/**
 * The value of a state that an execution computes for the next request of a sequence. It takes effect when the execution
 * is finished, whether its client still waits or not, unless execution or request failed; without a new value the present
 * one stays. Owned by the server, and confined as the {@link Batch} that it belongs to. <em>Implemented by the
 * server.</em>
 *
 * <p>A value is written one way, once: a second call of any method throws a {@link BackendException}.
 *
 * @since 1.0
 */
@Incubating
public interface SequenceState {
    /**
     * Allocates the value in memory of the server. The backend fills it before the execution is finished.
     *
     * @param type the type of its elements, that of the configuration; of fixed size
     * @param shape its dimensions, with the batch dimension if the model batches
     * @return a tensor to be written, aligned to 64 bytes; its content is undefined, but for a state whose memory grows
     *     ({@code use_growable_memory}) it begins with the present value
     * @throws BackendException if type or shape do not fit the configuration, or there is no memory
     */
    Tensor allocate(DataType type, Shape shape) throws BackendException;

    /**
     * Allocates the value in memory of one place.
     *
     * @param type as of {@link #allocate(DataType, Shape)}
     * @param shape as there
     * @param place where the value lies, and is passed to the next execution
     * @return as there
     * @throws BackendException as there, and {@link ErrorCode#UNSUPPORTED} if the server has no memory there
     */
    Tensor allocate(DataType type, Shape shape, MemoryPlace place) throws BackendException;

    /**
     * Allocates a value of byte strings in memory of the server.
     *
     * @param shape its dimensions, with the batch dimension if the model batches
     * @param byteSize the size of all elements together with their length prefixes, in bytes
     * @return a tensor of {@link DataType#BYTES} to be written, content undefined
     * @throws BackendException as {@link #allocate(DataType, Shape)}
     */
    Tensor allocateBytes(Shape shape, long byteSize) throws BackendException;

    /**
     * Sets the value without a copy. It lies in memory of the backend, or in an output or input of the same request.
     *
     * @param tensor the value, not to be changed until {@code release} runs
     * @param release run exactly once, on any thread, when the server no longer needs the memory: after the next
     *     execution of the sequence, at its end, or when this method throws. Short, must not block
     * @throws BackendException as {@link #allocate(DataType, Shape)}
     */
    void put(Tensor tensor, Runnable release) throws BackendException;
}
