package dev.nereid.grpc.wire;

import dev.nereid.api.InferenceException;
import dev.nereid.api.Quoted;
import dev.nereid.api.RequestOptions;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ParameterValue;
import dev.nereid.spi.Sequence;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;

/** Reads gRPC request parameters: scheduling options and parameters for the backend. Confined. */
final class RequestParameterReader {
    private static final String RESERVED_PREFIX = "triton_";
    private static final String EMPTY_FINAL_RESPONSE = "triton_enable_empty_final_response";

    private Optional<Sequence.Id> sequenceId = Optional.empty();
    private boolean sequenceStart;
    private boolean sequenceEnd;
    private long priority;
    private long timeoutMicros;
    private boolean emptyFinalResponse;
    private Map<String, ParameterValue> backendParameters = Map.of();

    private RequestParameterReader() {}

    /**
     * Reads the parameters of a request.
     *
     * @throws InferenceException if one has a value of the wrong type, or a reserved name
     */
    static RequestParameterReader read(Map<String, WireParameter> parameters) {
        RequestParameterReader result = new RequestParameterReader();
        parameters.forEach(result::read);
        return result;
    }

    /** Returns how to schedule the request. */
    RequestOptions options(OptionalLong deadlineNanos) {
        Optional<Sequence> sequence = sequenceId.map(id -> new Sequence(id, sequenceStart, sequenceEnd));
        return new RequestOptions(priority, timeoutMicros, deadlineNanos, sequence);
    }

    /** Returns the parameters for the backend. */
    Map<String, ParameterValue> backendParameters() {
        return backendParameters;
    }

    /** Says whether the client of a stream wants to be told of an end without a response. */
    boolean emptyFinalResponse() {
        return emptyFinalResponse;
    }

    private void read(String name, WireParameter value) {
        switch (name) {
            case "sequence_id" -> sequenceId = sequenceId(value);
            case "sequence_start" -> sequenceStart = bool(name, value);
            case "sequence_end" -> sequenceEnd = bool(name, value);
            case "priority" -> priority = priority(value);
            case "timeout" -> timeoutMicros = timeout(value);
            case EMPTY_FINAL_RESPONSE -> emptyFinalResponse = bool(name, value);
            default -> add(name, backendValue(name, value));
        }
    }

    private void add(String name, ParameterValue value) {
        if (backendParameters.isEmpty()) {
            backendParameters = new LinkedHashMap<>();
        }
        backendParameters.put(name, value);
    }

    private static Optional<Sequence.Id> sequenceId(WireParameter value) {
        return switch (value) {
            case WireParameter.Value(ParameterValue.Int(long id)) ->
                id == 0 ? Optional.empty() : Optional.of(new Sequence.Id.Numeric(id));
            case WireParameter.Value(ParameterValue.Text(String id)) ->
                id.isEmpty() ? Optional.empty() : Optional.of(new Sequence.Id.Text(id));
            case WireParameter.Value _, WireParameter.Unsigned _, WireParameter.None _ ->
                throw wrongType("sequence_id", "int64_param or string_param");
        };
    }

    private static boolean bool(String name, WireParameter value) {
        if (value instanceof WireParameter.Value(ParameterValue.Bool(boolean flag))) {
            return flag;
        }
        throw wrongType(name, "bool_param");
    }

    private static long priority(WireParameter value) {
        return switch (value) {
            case WireParameter.Unsigned(long unsigned) -> unsigned;
            case WireParameter.Value(ParameterValue.Int(long signed)) -> {
                if (signed < 0) {
                    throw invalid("invalid value for 'priority', expected value >= 0.");
                }
                yield signed;
            }
            case WireParameter.Value _, WireParameter.None _ ->
                throw wrongType("priority", "int64_param or uint64_param");
        };
    }

    private static long timeout(WireParameter value) {
        if (value instanceof WireParameter.Value(ParameterValue.Int(long micros))) {
            return micros;
        }
        throw wrongType("timeout", "int64_param");
    }

    private static ParameterValue backendValue(String name, WireParameter value) {
        if (name.startsWith(RESERVED_PREFIX)) {
            throw invalid("parameter keys starting with '" + RESERVED_PREFIX + "' are reserved for Triton usage. Only"
                    + " the following keys starting with '" + RESERVED_PREFIX + "' are allowed: "
                    + EMPTY_FINAL_RESPONSE);
        }
        if (value instanceof WireParameter.Value(ParameterValue known)) {
            return known;
        }
        throw wrongType(name, "int64_param, bool_param, or string_param");
    }

    private static InferenceException wrongType(String name, String expected) {
        return invalid("invalid value type for '" + Quoted.text(name) + "' parameter, expected " + expected + ".");
    }

    private static InferenceException invalid(String text) {
        return new InferenceException(ErrorCode.INVALID_ARGUMENT, text);
    }
}
