package dev.nereid.spi;

import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * A queued request, as a {@link BatchingStrategy} sees it. Read only; its memory is valid until the {@link
 * FormingBatch} that received it is closed. <em>Implemented by the server.</em>
 */
public interface QueuedRequest {
    /**
     * Returns the client's name for the request.
     *
     * @return the id; empty if the client sent none
     */
    String id();

    /**
     * Returns the number of items in the request.
     *
     * @return the first dimension of its inputs if the model batches, else 1
     */
    int batchSize();

    /**
     * Returns the names of the inputs that the request carries.
     *
     * @return the names; immutable
     */
    List<String> inputs();

    /**
     * Returns an input in the shape that the backend sees ({@link TensorSpec#backendDims()}).
     *
     * @param name the name of an input
     * @return the tensor, read only; empty if the request does not carry it
     */
    Optional<Tensor> input(String name);

    /**
     * Returns the outputs that the client requested.
     *
     * @return the names in the order of the model's configuration; immutable
     */
    List<String> requestedOutputs();

    /**
     * Returns the request's own parameters, without those for the server.
     *
     * @return the parameters by name; immutable
     */
    Map<String, ParameterValue> parameters();

    /**
     * Returns the priority that the client requested.
     *
     * @return 1 for the highest, or 0 if the client requested none; unsigned
     */
    long priority();
}
