package dev.nereid.distribution.parity;

import com.google.protobuf.ByteString;
import java.util.List;
import java.util.Map;

/** The outcome of an inference, independent of the protocol, for comparison. */
sealed interface Outcome {
    /**
     * A completed request.
     *
     * @param responses the responses in their order: one, if the model is not decoupled
     */
    record Completed(List<Response> responses) implements Outcome {}

    /**
     * A refused request.
     *
     * @param code the error code in the form of the protocol; empty if the protocol does not send it
     * @param text the text
     */
    record Refused(String code, String text) implements Outcome {
        /** Returns the refusal in the form of a protocol that sends the text alone. */
        Refused withoutCode() {
            return new Refused("", text);
        }
    }

    /**
     * One response.
     *
     * @param model the name of the model
     * @param version its version
     * @param id the id of the request
     * @param parameters the response parameters of the backend
     * @param outputs the outputs in their order
     */
    record Response(String model, String version, String id, Map<String, String> parameters, List<Output> outputs) {}

    /**
     * One output.
     *
     * @param name the name
     * @param datatype the type
     * @param shape the dimensions
     * @param data the bytes
     */
    record Output(String name, String datatype, List<Long> shape, ByteString data) {}
}
