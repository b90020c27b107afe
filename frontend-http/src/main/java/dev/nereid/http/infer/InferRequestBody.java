package dev.nereid.http.infer;

import dev.nereid.api.InputTensor;
import dev.nereid.api.RequestOptions;
import dev.nereid.api.parameter.ParameterValue;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The parsed body of an inference request. Immutable as a view of its memory.
 *
 * @param id the request's id; empty for none
 * @param outputs the requested outputs and their formats
 * @param options the parameters for the server
 * @param repeated the responses to requests with the same JSON text; {@code null} if the text was not cached
 */
record InferRequestBody(
        String id,
        List<InputTensor> inputs,
        RequestedOutputs outputs,
        Map<String, ParameterValue> parameters,
        RequestOptions options,
        @Nullable RepeatedResponse repeated) {
    /** Returns a request that differs in its inputs and earlier responses. */
    InferRequestBody with(List<InputTensor> otherInputs, @Nullable RepeatedResponse otherRepeated) {
        return new InferRequestBody(id, otherInputs, outputs, parameters, options, otherRepeated);
    }
}
