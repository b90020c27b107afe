package dev.nereid.api.frontend;

import dev.nereid.api.InferenceException;
import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.spi.Sequence;
import java.util.Optional;

/**
 * Decodes the value of one parameter from its protocol. Every method but {@link #reserved} throws an {@link
 * InferenceException} with the text of the protocol if the value is of the wrong type or out of range.
 */
public interface ParameterReader {
    /**
     * Decodes the id of a sequence.
     *
     * @return the id; empty for 0 and for an empty text, which mean no sequence
     */
    Optional<Sequence.Id> sequenceId();

    /**
     * Decodes a boolean.
     *
     * @param name the parameter's name
     * @return the value
     */
    boolean bool(String name);

    /**
     * Decodes a priority.
     *
     * @return the priority, unsigned
     */
    long priority();

    /**
     * Decodes a timeout.
     *
     * @return the timeout in microseconds, unsigned
     */
    long timeoutMicros();

    /**
     * Decodes a parameter for the backend.
     *
     * @param name the parameter's name
     * @return the value
     */
    ParameterValue value(String name);

    /**
     * Creates the error of a parameter with a reserved name.
     *
     * @return the error, not thrown
     */
    InferenceException reserved();
}
