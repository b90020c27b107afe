package dev.nereid.spi;

import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * A response under construction. Confined to one thread at a time. <em>Implemented by the server</em>: tests use the
 * fakes of the testkit.
 *
 * <p>Outputs reach the client in the order of the model's configuration. Outputs that the client did not request are
 * dropped; outputs that were not put in are absent. An output of another type or shape than configured is passed on,
 * and one that the configuration does not know is dropped; the log names each of them, and each missing one, once for
 * each model. They are errors in tests, of the contract kit and of the server in memory. An output put in twice is an
 * error of the backend: the call throws {@link ErrorCode#INTERNAL}.
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
    Tensor allocate(String output, DataType type, Shape shape);

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
    default Tensor allocate(String output, DataType type, Shape shape, MemoryPlace place) {
        if (place.isHost()) {
            return allocate(output, type, shape);
        }
        throw new BackendException(
                ErrorCode.UNSUPPORTED, "output '" + output + "': no memory of " + place + " (expected: host memory)");
    }

    /**
     * Names the work of a device that writes an allocated output. The execution may finish before the work has ended: the
     * inputs of the request stay until then. For a response of a sender, {@link ResponseSender#send} and {@link #discard}
     * wait for it. Without a fence the output is written when the response is sent.
     *
     * @param output the name of an output of {@link #allocate(String, DataType, Shape, MemoryPlace)}
     * @param fence the work that writes it
     * @throws BackendException {@link ErrorCode#UNSUPPORTED} if the server cannot wait for work of a device,
     *     {@link ErrorCode#INTERNAL} if the output was not allocated
     */
    @Incubating
    default void fence(String output, Fence fence) {
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
    Tensor allocateBytes(String output, Shape shape, long byteSize);

    /**
     * Adds an output without a copy. It lies in memory of the backend, or in an input of the same request or a slice of
     * one. The server reads it in place and runs {@code release} afterwards.
     *
     * @param output the name of an output
     * @param tensor the output, not to be changed until {@code release} runs. It may be an input of the same
     *     request: the server keeps inputs until the response was sent
     * @param release run exactly once, on any thread, when the server no longer needs the memory: perhaps before this
     *     method returns, and also when it throws. Short, must not block; its exceptions are logged
     * @throws BackendException if the output was put in before, or lies in memory that other
     *     threads may not use
     */
    void put(String output, Tensor tensor, Runnable release);

    /**
     * Adds an output in memory that needs no release. It is an input of the same request, or memory that never changes
     * and is freed by the garbage collector.
     *
     * @param output the name of an output
     * @param tensor the output, as in {@link #put(String, Tensor, Runnable)}
     * @throws BackendException as {@link #put(String, Tensor, Runnable)}
     */
    default void put(String output, Tensor tensor) {
        put(output, tensor, () -> {});
    }

    /**
     * Adds an output of {@link DataType#FP32} with values of a Java array.
     *
     * @param output the name of an output
     * @param shape its dimensions, with the batch dimension if the model batches
     * @param values the elements in row-major order, which are copied
     * @throws BackendException as {@link #allocate(String, DataType, Shape)}
     * @throws IllegalArgumentException if the number of values differs from that of the shape
     */
    default void putFloats(String output, Shape shape, float... values) {
        TensorElements.checkCount("output '" + output + "': values", values.length, shape);
        MemorySegment data = allocate(output, DataType.FP32, shape).data();
        MemorySegment.copy(values, 0, data, TensorElements.FLOAT, 0, values.length);
    }

    /**
     * Adds an output of {@link DataType#FP64} with values of a Java array.
     *
     * @param output the name of an output
     * @param shape its dimensions, with the batch dimension if the model batches
     * @param values the elements in row-major order, which are copied
     * @throws BackendException as {@link #allocate(String, DataType, Shape)}
     * @throws IllegalArgumentException if the number of values differs from that of the shape
     */
    default void putDoubles(String output, Shape shape, double... values) {
        TensorElements.checkCount("output '" + output + "': values", values.length, shape);
        MemorySegment data = allocate(output, DataType.FP64, shape).data();
        MemorySegment.copy(values, 0, data, TensorElements.DOUBLE, 0, values.length);
    }

    /**
     * Adds an output of {@link DataType#INT32} with values of a Java array.
     *
     * @param output the name of an output
     * @param shape its dimensions, with the batch dimension if the model batches
     * @param values the elements in row-major order, which are copied
     * @throws BackendException as {@link #allocate(String, DataType, Shape)}
     * @throws IllegalArgumentException if the number of values differs from that of the shape
     */
    default void putInts(String output, Shape shape, int... values) {
        TensorElements.checkCount("output '" + output + "': values", values.length, shape);
        MemorySegment data = allocate(output, DataType.INT32, shape).data();
        MemorySegment.copy(values, 0, data, TensorElements.INT, 0, values.length);
    }

    /**
     * Adds an output of {@link DataType#INT64} with values of a Java array.
     *
     * @param output the name of an output
     * @param shape its dimensions, with the batch dimension if the model batches
     * @param values the elements in row-major order, which are copied
     * @throws BackendException as {@link #allocate(String, DataType, Shape)}
     * @throws IllegalArgumentException if the number of values differs from that of the shape
     */
    default void putLongs(String output, Shape shape, long... values) {
        TensorElements.checkCount("output '" + output + "': values", values.length, shape);
        MemorySegment data = allocate(output, DataType.INT64, shape).data();
        MemorySegment.copy(values, 0, data, TensorElements.LONG, 0, values.length);
    }

    /**
     * Adds an output of texts.
     *
     * @param output the name of an output
     * @param shape its dimensions, with the batch dimension if the model batches
     * @param texts the elements in row-major order, encoded as UTF-8
     * @throws BackendException as {@link #allocateBytes}
     * @throws IllegalArgumentException if the number of texts differs from that of the shape
     */
    default void putStrings(String output, Shape shape, List<String> texts) {
        putByteStrings(output, shape, TensorElements.encode(texts));
    }

    /**
     * Adds an output of byte strings.
     *
     * @param output the name of an output
     * @param shape its dimensions, with the batch dimension if the model batches
     * @param elements the elements in row-major order, which are copied
     * @throws BackendException as {@link #allocateBytes}
     * @throws IllegalArgumentException if the number of elements differs from that of the shape
     */
    default void putByteStrings(String output, Shape shape, List<byte[]> elements) {
        TensorElements.checkCount("output '" + output + "': elements", elements.size(), shape);
        TensorElements.frame(
                elements,
                allocateBytes(output, shape, TensorElements.framedSize(elements))
                        .data());
    }

    /**
     * Adds a text as a parameter to the response. One of the same name is replaced.
     *
     * @param name the parameter's name; must not start with {@code triton_}
     * @param value its value
     * @throws IllegalArgumentException if the name starts with {@code triton_}
     */
    void parameter(String name, String value);

    /**
     * Adds an integer as a parameter to the response. One of the same name is replaced.
     *
     * @param name the parameter's name; must not start with {@code triton_}
     * @param value its value
     * @throws IllegalArgumentException if the name starts with {@code triton_}
     */
    void parameter(String name, long value);

    /**
     * Adds a number as a parameter to the response. One of the same name is replaced.
     *
     * @param name the parameter's name; must not start with {@code triton_}
     * @param value its value
     * @throws IllegalArgumentException if the name starts with {@code triton_}
     */
    void parameter(String name, double value);

    /**
     * Adds a truth value as a parameter to the response. One of the same name is replaced.
     *
     * @param name the parameter's name; must not start with {@code triton_}
     * @param value its value
     * @throws IllegalArgumentException if the name starts with {@code triton_}
     */
    void parameter(String name, boolean value);

    /**
     * Discards a response that will not be sent, and frees its outputs. Every response of a
     * {@link ResponseSender} is sent or discarded; later calls do nothing.
     */
    void discard();
}
