package dev.nereid.grpc.wire;

import dev.nereid.api.InferenceException;
import dev.nereid.api.frontend.RequestParameters;
import java.util.Map;

/** Reads gRPC request parameters: scheduling options and parameters for the backend. Static functions only. */
final class RequestParameterReader {
    /** The one name with the reserved prefix that clients may use. */
    static final String EMPTY_FINAL_RESPONSE = "triton_enable_empty_final_response";

    private RequestParameterReader() {}

    /**
     * Reads the parameters of a request.
     *
     * @throws InferenceException if one has a value of the wrong type, or a reserved name
     */
    static RequestParameters read(Map<String, WireParameter> parameters) {
        RequestParameters result = new RequestParameters();
        parameters.forEach((name, value) -> {
            if (name.equals(EMPTY_FINAL_RESPONSE)) {
                value.bool(name); // only to check it, in the order of the parameters
            } else {
                result.read(name, value);
            }
        });
        return result;
    }

    /** Returns whether a stream's client requests an empty final response, without outputs, if there is no other. */
    static boolean emptyFinalResponse(Map<String, WireParameter> parameters) {
        WireParameter value = parameters.get(EMPTY_FINAL_RESPONSE);
        return value != null && value.bool(EMPTY_FINAL_RESPONSE);
    }
}
