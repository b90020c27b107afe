package dev.nereid.grpc;

import dev.nereid.api.CallOptions;
import dev.nereid.api.InferenceException;
import dev.nereid.api.Quoted;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ParameterValue;
import dev.nereid.spi.Sequence;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;

/** Sorts a request's parameters into those that say how to schedule it and those for the backend. Confined. */
final class RequestParameters {
    private static final String RESERVED_PREFIX = "triton_";
    private static final String EMPTY_FINAL_RESPONSE = "triton_enable_empty_final_response";

    private Optional<Sequence.Id> sequenceId = Optional.empty();
    private boolean sequenceStart;
    private boolean sequenceEnd;
    private long priority;
    private long timeoutMicros;
    private boolean wantsEmptyFinal;
    private Map<String, ParameterValue> others = Map.of();

    private RequestParameters() {}

    /**
     * Reads the parameters of a request.
     *
     * @throws InferenceException if one has a value of the wrong type, or a reserved name
     */
    static RequestParameters read(Map<String, WireParameter> parameters) {
        RequestParameters result = new RequestParameters();
        parameters.forEach(result::read);
        return result;
    }

    /** Returns how to schedule the request. */
    CallOptions options(OptionalLong deadlineNanos) {
        Optional<Sequence> sequence = sequenceId.map(id -> new Sequence(id, sequenceStart, sequenceEnd));
        return new CallOptions(priority, timeoutMicros, deadlineNanos, sequence);
    }

    /** Returns the parameters for the backend. */
    Map<String, ParameterValue> others() {
        return others;
    }

    /** Says whether the client of a stream wants to be told of an end without a response. */
    boolean wantsEmptyFinal() {
        return wantsEmptyFinal;
    }

    private void read(String name, WireParameter value) {
        switch (name) {
            case "sequence_id" -> sequenceId = sequenceId(value);
            case "sequence_start" -> sequenceStart = bool(name, value);
            case "sequence_end" -> sequenceEnd = bool(name, value);
            case "priority" -> priority = priority(value);
            case "timeout" -> timeoutMicros = timeout(value);
            case EMPTY_FINAL_RESPONSE -> wantsEmptyFinal = bool(name, value);
            default -> add(name, other(name, value));
        }
    }

    private void add(String name, ParameterValue value) {
        if (others.isEmpty()) {
            others = new LinkedHashMap<>();
        }
        others.put(name, value);
    }

    private static Optional<Sequence.Id> sequenceId(WireParameter value) {
        return switch (value) {
            case WireParameter.Known(ParameterValue.Int(long id)) ->
                id == 0 ? Optional.empty() : Optional.of(new Sequence.Id.Numeric(id));
            case WireParameter.Known(ParameterValue.Text(String id)) ->
                id.isEmpty() ? Optional.empty() : Optional.of(new Sequence.Id.Text(id));
            case WireParameter.Known _, WireParameter.Unsigned _, WireParameter.None _ ->
                throw wrongType("sequence_id", "int64_param or string_param");
        };
    }

    private static boolean bool(String name, WireParameter value) {
        if (value instanceof WireParameter.Known(ParameterValue.Bool(boolean flag))) {
            return flag;
        }
        throw wrongType(name, "bool_param");
    }

    private static long priority(WireParameter value) {
        return switch (value) {
            case WireParameter.Unsigned(long unsigned) -> unsigned;
            case WireParameter.Known(ParameterValue.Int(long signed)) -> {
                if (signed < 0) {
                    throw invalid("invalid value for 'priority', expected value >= 0.");
                }
                yield signed;
            }
            case WireParameter.Known _, WireParameter.None _ ->
                throw wrongType("priority", "int64_param or uint64_param");
        };
    }

    private static long timeout(WireParameter value) {
        if (value instanceof WireParameter.Known(ParameterValue.Int(long micros))) {
            return micros;
        }
        throw wrongType("timeout", "int64_param");
    }

    private static ParameterValue other(String name, WireParameter value) {
        if (name.startsWith(RESERVED_PREFIX)) {
            throw invalid("parameter keys starting with '" + RESERVED_PREFIX + "' are reserved for Triton usage. Only"
                    + " the following keys starting with '" + RESERVED_PREFIX + "' are allowed: "
                    + EMPTY_FINAL_RESPONSE);
        }
        if (value instanceof WireParameter.Known(ParameterValue known)) {
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
