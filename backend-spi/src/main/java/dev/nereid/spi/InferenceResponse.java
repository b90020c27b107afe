package dev.nereid.spi;

/**
 * A response under construction. Confined to one thread at a time. <em>Implemented by the server</em>: tests use the
 * fakes of the testkit.
 *
 * <p>Outputs reach the client in the order of the model's configuration. Those that the client did not request
 * are dropped; those that were not put in are absent. An output that the configuration does not know, of another type,
 * or put in twice is an error of the backend: the call throws {@link ErrorCode#INTERNAL}.
 *
 * @since 1.0
 */
public interface InferenceResponse {
    /**
     * Allocates an output in memory of the server. The backend fills it before the response is sent.
     *
     * @param output the name of an output
     * @param type the type of its elements; of fixed size
     * @param shape its dimensions, with the batch dimension if the model batches
     * @return a tensor to be written, content undefined, aligned to 64 bytes
     * @throws BackendException if the shape is too large, the output was put in before, or there is no memory
     */
    Tensor allocate(String output, DataType type, Shape shape) throws BackendException;

    /**
     * Allocates an output in memory of one place, for instance of a device.
     *
     * @param output as of {@link #allocate(String, DataType, Shape)}
     * @param type as there
     * @param shape as there
     * @param place where the backend writes the output; the server moves it to where the client wants it
     * @return a tensor in that place, to be written; in ordinary memory in place of pinned memory that the server does
     *     not have
     * @throws BackendException as there, and {@link ErrorCode#UNSUPPORTED} if the server has no memory there
     */
    default Tensor allocate(String output, DataType type, Shape shape, MemoryPlace place) throws BackendException {
        if (place.isHost()) {
            return allocate(output, type, shape);
        }
        throw new BackendException(
                ErrorCode.UNSUPPORTED, "output '" + output + "': no memory of " + place + " (expected: host memory)");
    }

    /**
     * Names the work of a device that writes an allocated output. The response may be sent before the work has ended:
     * the inputs of the request stay until then. Without a fence the output is written when the response is sent.
     *
     * @param output the name of an output of {@link #allocate(String, DataType, Shape, MemoryPlace)}
     * @param fence the work that writes it
     * @throws BackendException {@link ErrorCode#UNSUPPORTED} if the server cannot wait for work of a device,
     *     {@link ErrorCode#INTERNAL} if the output was not allocated
     */
    @Incubating
    default void fence(String output, Fence fence) throws BackendException {
        throw new BackendException(
                ErrorCode.UNSUPPORTED, "output '" + output + "': fences are not available from this server");
    }

    /**
     * Allocates an output of byte strings in memory of the server.
     *
     * @param output the name of an output
     * @param shape its dimensions, with the batch dimension if the model batches
     * @param byteSize the size of all elements together with their length prefixes, in bytes
     * @return a tensor of {@link DataType#BYTES} to be written, content undefined
     * @throws BackendException as {@link #allocate}
     */
    Tensor allocateBytes(String output, Shape shape, long byteSize) throws BackendException;

    /**
     * Adds an output without a copy. It lies in memory of the backend, or in an input of the same request or a slice of
     * one. The server reads it in place and runs {@code release} afterwards.
     *
     * @param output the name of an output
     * @param tensor the output, not to be changed until {@code release} runs. It may be an input of the same
     *     request: the server keeps inputs until the response was sent
     * @param release run exactly once, on any thread, when the server no longer needs the memory: perhaps before this
     *     method returns, and also when it throws. Short, must not block; its exceptions are logged
     * @throws BackendException if the output was put in before, is none of the model's, or lies in memory that other
     *     threads may not use
     */
    void put(String output, Tensor tensor, Runnable release) throws BackendException;

    /**
     * Adds an output in memory that needs no release. It is an input of the same request, or memory that never changes
     * and is freed by the garbage collector.
     *
     * @param output the name of an output
     * @param tensor the output, as in {@link #put(String, Tensor, Runnable)}
     * @throws BackendException as {@link #put(String, Tensor, Runnable)}
     */
    default void put(String output, Tensor tensor) throws BackendException {
        put(output, tensor, () -> {});
    }

    /**
     * Adds a parameter to the response; one of the same name is replaced.
     *
     * @param name the parameter's name; must not start with {@code triton_}
     * @param value its value
     */
    void parameter(String name, ParameterValue value);

    /**
     * Discards a response that will not be sent, and frees its outputs. Every response of a
     * {@link ResponseSender} is sent or discarded; later calls do nothing.
     */
    void discard();
}
