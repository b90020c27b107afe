package dev.nereid.http.infer;

import dev.nereid.api.InferenceException;
import dev.nereid.api.RequestOptions;
import dev.nereid.api.SequenceIds;
import dev.nereid.api.frontend.ParameterReader;
import dev.nereid.api.frontend.RequestParameters;
import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.http.body.RequestLimits;
import dev.nereid.http.json.JsonErrors;
import dev.nereid.http.json.JsonFields;
import dev.nereid.http.json.JsonNumber;
import dev.nereid.http.json.JsonParameterValues;
import dev.nereid.http.json.JsonReader;
import dev.nereid.spi.Sequence;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;

/**
 * Reads the JSON {@code parameters} of an inference request. Confined to the thread that reads the request.
 *
 * <p>As a {@link ParameterReader} it decodes the value at the position of the JSON reader.
 */
final class JsonParameterReader implements ParameterReader {
    private static final String BINARY_OUTPUT = "binary_data_output";

    private final JsonReader json;
    private final JsonNumber number;
    private final RequestParameters parameters = new RequestParameters();
    private boolean binaryOutput;

    /** Reads the parameters at an offset in a checked JSON text, with a number to reuse for numeric values. */
    JsonParameterReader(JsonReader json, int at, JsonNumber number) {
        this.json = json;
        this.number = number;
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

    private void read(String name) {
        if (name.equals(BINARY_OUTPUT)) {
            binaryOutput = bool(name);
        } else {
            parameters.read(name, this);
        }
    }

    /** Returns the parameters for the backend; unmodifiable. */
    Map<String, ParameterValue> backendParameters() {
        return parameters.backendParameters();
    }

    RequestOptions options() {
        return parameters.options(OptionalLong.empty());
    }

    /** Says whether outputs that the request does not name are written as binary data. */
    boolean binaryOutput() {
        return binaryOutput;
    }

    @Override
    public Optional<Sequence.Id> sequenceId() {
        int at = json.position();
        if (json.readNumber(number) && number.isUnsigned()) {
            return number.bits() == 0 ? Optional.empty() : Optional.of(new Sequence.Id.Numeric(number.bits()));
        }
        String text = JsonFields.string(json, at, "sequence_id");
        if (text.isEmpty()) {
            return Optional.empty();
        }
        Sequence.Id id = new Sequence.Id.Text(text);
        SequenceIds.check(id);
        return Optional.of(id);
    }

    @Override
    public boolean bool(String name) {
        return JsonFields.bool(json, json.position(), name);
    }

    @Override
    public long priority() {
        return JsonFields.readUnsigned(json, number, "priority");
    }

    @Override
    public long timeoutMicros() {
        return JsonFields.readUnsigned(json, number, "timeout");
    }

    @Override
    public ParameterValue value(String name) {
        RequestLimits.checkCount("parameters", parameters.backendParameterCount(), RequestLimits.MAX_PARTS);
        return JsonParameterValues.read(json, number, name);
    }

    @Override
    public InferenceException reserved() {
        return JsonFields.invalid(
                "parameter keys starting with 'triton_' are reserved for Triton usage and should not be specified.");
    }
}
