package dev.nereid.api;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.parameter.ParameterValue;
import java.util.List;
import java.util.Map;

/**
 * One inference request to one model, as received and unchecked. Immutable as a view of its memory.
 *
 * <p>Nothing is checked against the model yet. The memory of the tensors belongs to the holder of the request;
 * {@link InferenceServer#infer} takes it over, and {@code release} frees it.
 *
 * @param model the model
 * @param id the caller's name for the request; empty for none
 * @param inputs the inputs as received, in any order
 * @param outputs the requested outputs; empty for all as the model makes them
 * @param parameters the parameters for the backend, without the parameters in {@code options}; immutable
 * @param options the scheduling options
 * @param release frees the memory of the inputs: run exactly once, on any thread; short, and must not block or throw
 */
public record InferRequest(
        ModelRef model,
        String id,
        List<InputTensor> inputs,
        List<RequestedOutput> outputs,
        Map<String, ParameterValue> parameters,
        RequestOptions options,
        Runnable release) {
    /** Checks the components. Lists are not copied, since this is the hot path: do not change them. */
    public InferRequest {
        requireNonNull(model, "model");
        requireNonNull(id, "id");
        requireNonNull(inputs, "inputs");
        requireNonNull(outputs, "outputs");
        requireNonNull(parameters, "parameters");
        requireNonNull(options, "options");
        requireNonNull(release, "release");
    }

    /**
     * Creates a request for all outputs of a model, without id, parameters or options.
     *
     * @param model the model
     * @param inputs the inputs
     * @param release frees the memory of the inputs
     * @return the request
     */
    public static InferRequest of(ModelRef model, List<InputTensor> inputs, Runnable release) {
        return new InferRequest(model, "", List.copyOf(inputs), List.of(), Map.of(), RequestOptions.DEFAULT, release);
    }
}
