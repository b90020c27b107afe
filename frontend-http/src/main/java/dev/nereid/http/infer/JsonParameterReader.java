package dev.nereid.http.infer;

import dev.nereid.api.RequestOptions;
import dev.nereid.http.body.RequestLimits;
import dev.nereid.http.json.JsonErrors;
import dev.nereid.http.json.JsonFields;
import dev.nereid.http.json.JsonNumber;
import dev.nereid.http.json.JsonParameterValues;
import dev.nereid.http.json.JsonReader;
import dev.nereid.spi.ParameterValue;
import dev.nereid.spi.Sequence;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/** Reads the JSON {@code parameters} of an inference request. Confined. */
final class JsonParameterReader {
    private static final String RESERVED_PREFIX = "triton_";
    /** In bytes, as the reference server counts characters. */
    private static final int MAX_SEQUENCE_ID_BYTES = 128;

    private final JsonReader json;
    private final JsonNumber number = new JsonNumber();
    private Map<String, ParameterValue> backendParameters = Map.of();
    private Sequence.@Nullable Id sequence;
    private boolean sequenceStart;
    private boolean sequenceEnd;
    private long priority;
    private long timeoutMicros;
    private boolean binaryOutput;

    /**
     * Reads the parameters.
     *
     * @param json a text that was passed over
     * @param at the offset of the parameters in it
     */
    JsonParameterReader(JsonReader json, int at) {
        this.json = json;
        json.moveTo(at);
        if (json.peek() != '{') {
            throw JsonErrors.value(
                    "failed to get request params.: attempt to get members for non-object",
                    "parameters",
                    "an object",
                    json.describeValue());
        }
        for (boolean more = json.firstMember(); more; more = json.nextMember()) {
            int value = json.position();
            read(json.key());
            json.moveTo(value);
            json.skipValue();
        }
    }

    /** Returns the parameters of the backend; nobody may change them. */
    Map<String, ParameterValue> backendParameters() {
        return backendParameters.isEmpty() ? backendParameters : Collections.unmodifiableMap(backendParameters);
    }

    /** Returns the parameters of the server. */
    RequestOptions options() {
        Optional<Sequence> place =
                Optional.ofNullable(sequence).map(id -> new Sequence(id, sequenceStart, sequenceEnd));
        return new RequestOptions(priority, timeoutMicros, OptionalLong.empty(), place);
    }

    /** Says whether outputs are to be written as bytes where the request does not name them. */
    boolean binaryOutput() {
        return binaryOutput;
    }

    private void read(String name) {
        switch (name) {
            case "sequence_id" -> sequence = readSequenceId();
            case "sequence_start" -> sequenceStart = JsonFields.bool(json, json.position(), name);
            case "sequence_end" -> sequenceEnd = JsonFields.bool(json, json.position(), name);
            case "priority" -> priority = JsonFields.readUnsigned(json, number, name);
            case "timeout" -> timeoutMicros = JsonFields.readUnsigned(json, number, name);
            case "binary_data_output" -> binaryOutput = JsonFields.bool(json, json.position(), name);
            default -> {
                if (name.startsWith(RESERVED_PREFIX)) {
                    throw JsonFields.invalid("parameter keys starting with 'triton_' are reserved for Triton usage and"
                            + " should not be specified.");
                }
                if (backendParameters.isEmpty()) {
                    backendParameters = new LinkedHashMap<>();
                }
                RequestLimits.checkCount("parameters", backendParameters.size(), RequestLimits.MAX_PARTS);
                backendParameters.putIfAbsent(name, JsonParameterValues.read(json, number, name));
            }
        }
    }

    private Sequence.@Nullable Id readSequenceId() {
        int at = json.position();
        if (json.readNumber(number) && number.isUnsigned()) {
            return number.bits() == 0 ? null : new Sequence.Id.Numeric(number.bits());
        }
        String text = JsonFields.string(json, at, "sequence_id");
        if (text.getBytes(StandardCharsets.UTF_8).length > MAX_SEQUENCE_ID_BYTES) {
            throw JsonFields.invalid(
                    "string correlation ID cannot be longer than " + MAX_SEQUENCE_ID_BYTES + " characters");
        }
        return text.isEmpty() ? null : new Sequence.Id.Text(text);
    }
}
