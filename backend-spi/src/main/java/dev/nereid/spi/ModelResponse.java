package dev.nereid.spi;

import java.util.List;
import java.util.Map;

/**
 * A response of another model. Owned by its receiver, and closed once. <em>Implemented by the server.</em>
 *
 * @since 1.0
 */
@Incubating
public interface ModelResponse extends AutoCloseable {
    /**
     * Returns the names of the outputs.
     *
     * @return the names in the order of the other model's configuration; immutable
     */
    List<String> outputs();

    /**
     * Returns an output.
     *
     * @param name the name of an output
     * @return the tensor, read only, valid until the response is closed; one that becomes an output is put with the
     *     response's {@link #close} as its release
     * @throws BackendException {@link ErrorCode#INVALID_ARGUMENT} if the response does not carry the output
     */
    Tensor requireOutput(String name) throws BackendException;

    /**
     * Returns the parameters of the response.
     *
     * @return the parameters by name; immutable
     */
    Map<String, ParameterValue> parameters();

    /** Releases the outputs. Later calls do nothing. */
    @Override
    void close();
}
