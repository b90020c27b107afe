package dev.nereid.distribution.testing;

import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Struct;
import com.google.protobuf.Value;
import com.google.protobuf.util.JsonFormat;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * A response over HTTP. Immutable, except the bytes, which are never changed.
 *
 * @param status the status
 * @param headers the headers, names in lower case
 * @param body the body
 */
public @SuppressWarnings("ArrayRecordComponent") // Never compared.
record RawHttpResponse(int status, Map<String, String> headers, byte[] body) {
    private static final String JSON_LENGTH = "inference-header-content-length";

    /** Returns the body as text. */
    public String text() {
        return new String(body, StandardCharsets.UTF_8);
    }

    /** Returns the JSON that the body is or begins with. */
    public Struct json() {
        Struct.Builder json = Struct.newBuilder();
        String text = new String(body, 0, jsonLength(), StandardCharsets.UTF_8);
        try {
            JsonFormat.parser().merge(text, json);
        } catch (InvalidProtocolBufferException e) {
            throw new AssertionError("no JSON: " + text, e);
        }
        return json.build();
    }

    /** Returns the error text of the body. */
    public String error() {
        return json().getFieldsOrThrow("error").getStringValue();
    }

    /** Returns the id of the request. */
    public String id() {
        return json().getFieldsOrDefault("id", Value.getDefaultInstance()).getStringValue();
    }

    /** Returns the binary outputs by name. */
    public Map<String, byte[]> binaryOutputs() {
        Map<String, byte[]> outputs = new LinkedHashMap<>();
        int at = jsonLength();
        for (Value output : json().getFieldsOrThrow("outputs").getListValue().getValuesList()) {
            Map<String, Value> members = output.getStructValue().getFieldsMap();
            Value parameters = members.getOrDefault("parameters", Value.getDefaultInstance());
            if (parameters.getStructValue().containsFields("binary_data_size")) {
                int size = (int) parameters
                        .getStructValue()
                        .getFieldsOrThrow("binary_data_size")
                        .getNumberValue();
                outputs.put(members.get("name").getStringValue(), Arrays.copyOfRange(body, at, at + size));
                at += size;
            }
        }
        return outputs;
    }

    private int jsonLength() {
        String length = headers.get(JSON_LENGTH);
        return length == null ? body.length : Integer.parseInt(length);
    }
}
