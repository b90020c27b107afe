package dev.nereid.http;

import dev.nereid.api.InputTensor;
import dev.nereid.spi.ParameterValue;
import java.util.List;
import java.util.Map;

/**
 * What the body of a request to generate says. Immutable as a view of its memory.
 *
 * @param id the client's name for the request; empty for none
 * @param inputs the inputs
 * @param parameters the parameters for the backend
 */
record GenerateRequest(String id, List<InputTensor> inputs, Map<String, ParameterValue> parameters) {}
