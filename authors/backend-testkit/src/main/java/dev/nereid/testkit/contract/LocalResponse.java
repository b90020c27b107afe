package dev.nereid.testkit.contract;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.Tensor;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * The responses of a model to one request. Immutable; the tensors are copies, in memory that is collected as garbage.
 *
 * @param responses the outputs of each response by name: one response, or any number from a decoupled model
 * @param states the new values of states by the names of their outputs
 * @param failure the error with which the request ended; empty for none
 * @param isRescheduled whether an iterative sequence goes on with this request
 */
public record LocalResponse(
        List<Map<String, Tensor>> responses,
        Map<String, Tensor> states,
        Optional<BackendException> failure,
        boolean isRescheduled) {
    public LocalResponse {
        responses = List.copyOf(responses);
        states = Map.copyOf(states);
    }

    /**
     * Returns an output of the only response.
     *
     * @throws AssertionError if the request failed, or has another number of responses, or none with that output
     */
    public Tensor output(String name) {
        if (failure.isPresent()) {
            throw new AssertionError("request failed (expected: a response): " + failure.get(), failure.get());
        }
        Tensor output = responses.size() == 1 ? responses.getFirst().get(name) : null;
        if (output == null) {
            throw new AssertionError("responses: " + responses + " (expected: one with the output '" + name + "')");
        }
        return output;
    }
}
