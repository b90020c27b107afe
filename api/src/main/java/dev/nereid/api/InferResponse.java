package dev.nereid.api;

import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Tensor;
import java.util.List;
import java.util.Map;

/**
 * One response to an inference request. Owned by the observer that received it; its tensors may be read until it is
 * closed.
 */
public interface InferResponse extends AutoCloseable {
    /** Prefix of parameter names that clients and backends may not use. It is reserved in requests and in responses. */
    String RESERVED_PREFIX = "triton_";

    /**
     * Returns the name of the model.
     *
     * @return the model's name
     */
    String model();

    /**
     * Returns the version of the model.
     *
     * @return the version
     */
    long version();

    /**
     * Identifies the load of the model version that responded.
     *
     * @return equal for the responses of one load, and for no others
     */
    default Object source() {
        return new ModelRef(model(), version());
    }

    /**
     * Returns the id of the request.
     *
     * @return the id; empty if the caller gave none
     */
    String id();

    /**
     * Returns the requested outputs that the model made, in the model's order. An output lies in memory that its client
     * can truncate only if the client requested it there.
     *
     * @return the outputs; immutable
     */
    List<NamedTensor> outputs();

    /**
     * Returns an output, or fails with an error that names it.
     *
     * @param name the name of an output
     * @return the tensor, which may be read until the response is closed; after its fence, if it has one
     * @throws InferenceException {@link ErrorCode#INTERNAL} if the response does not carry the output
     */
    default Tensor requireOutput(String name) {
        for (NamedTensor output : outputs()) {
            if (output.name().equals(name)) {
                return output.tensor().withName(name);
            }
        }
        throw new InferenceException(
                ErrorCode.INTERNAL,
                "output '" + Quoted.text(name) + "': not in the response (it has: "
                        + outputs().stream().map(NamedTensor::name).toList() + ")");
    }

    /**
     * Returns the parameters that the backend set.
     *
     * @return the parameters by name in the order they were set; immutable, empty for most models
     */
    Map<String, ParameterValue> parameters();

    /**
     * Says whether this response ends its request.
     *
     * @return always {@code true} for models that are not decoupled
     */
    boolean isFinal();

    /**
     * Leases one output, which outlives the response then: its close releases the other outputs. The response is open.
     *
     * @param output the index of the output in {@link #outputs}
     * @return the lease, owned by the caller
     * @throws IndexOutOfBoundsException if there is no such output
     * @throws IllegalStateException if the response is closed
     */
    TensorLease lease(int output);

    /** Releases the memory of the outputs that are not leased. May be called on any thread; later calls do nothing. */
    @Override
    void close();
}
