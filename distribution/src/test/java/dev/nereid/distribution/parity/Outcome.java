package dev.nereid.distribution.parity;

import com.google.protobuf.ByteString;
import java.util.List;
import java.util.Map;

/** What came of an inference, told without its protocol, to be compared. */
sealed interface Outcome {
    /**
     * It was answered.
     *
     * @param responses the responses in their order: one, if the model is not decoupled
     */
    record Completed(List<Response> responses) implements Outcome {}

    /**
     * It was refused.
     *
     * @param code the code as the protocol tells it
     * @param text the text
     */
    record Refused(String code, String text) implements Outcome {}

    /**
     * One response.
     *
     * @param model the model that answered
     * @param version its version
     * @param id the id of the request
     * @param parameters what the backend said beside
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
