package dev.nereid.http.infer;

import dev.nereid.api.InputTensor;
import dev.nereid.api.RequestOptions;
import dev.nereid.api.parameter.ParameterValue;
import java.util.List;
import java.util.Map;

/**
 * The parsed body of an inference request. Immutable as a view of its memory.
 *
 * @param id the request's id; empty for none
 * @param outputs the requested outputs and their formats
 * @param parameters the parameters for the backend
 * @param options the parameters for the server
 */
record InferRequestBody(
        String id,
        List<InputTensor> inputs,
        RequestedOutputs outputs,
        Map<String, ParameterValue> parameters,
        RequestOptions options) {}
