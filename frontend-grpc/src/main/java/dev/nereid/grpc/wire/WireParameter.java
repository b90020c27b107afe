package dev.nereid.grpc.wire;

import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.Quoted;
import dev.nereid.api.SequenceIds;
import dev.nereid.api.frontend.ParameterReader;
import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Sequence;
import java.util.Optional;

/** The value of a parameter as received, which decodes itself. Immutable. */
sealed interface WireParameter extends ParameterReader {
    /** A value of a type that backends support. */
    record Value(ParameterValue value) implements WireParameter {}

    /** An unsigned integer. */
    record Unsigned(long value) implements WireParameter {}

    /** A parameter without a value. */
    record None() implements WireParameter {
        static final WireParameter INSTANCE = new None();
    }

    @Override
    default Optional<Sequence.Id> sequenceId() {
        return switch (this) {
            case Value(ParameterValue.Int(long id)) ->
                id == 0 ? Optional.empty() : Optional.of(new Sequence.Id.Numeric(id));
            case Value(ParameterValue.Text(String id)) -> id.isEmpty() ? Optional.empty() : Optional.of(text(id));
            case Value _, Unsigned _, None _ -> throw wrongType("sequence_id", "int64_param or string_param");
        };
    }

    private static Sequence.Id text(String text) {
        Sequence.Id id = new Sequence.Id.Text(text);
        SequenceIds.check(id);
        return id;
    }

    @Override
    default boolean bool(String name) {
        if (this instanceof Value(ParameterValue.Bool(boolean flag))) {
            return flag;
        }
        throw wrongType(name, "bool_param");
    }

    @Override
    default long priority() {
        return switch (this) {
            case Unsigned(long unsigned) -> unsigned;
            case Value(ParameterValue.Int(long signed)) -> {
                if (signed < 0) {
                    throw invalid("invalid value for 'priority', expected value >= 0.");
                }
                yield signed;
            }
            case Value _, None _ -> throw wrongType("priority", "int64_param or uint64_param");
        };
    }

    @Override
    default long timeoutMicros() {
        if (this instanceof Value(ParameterValue.Int(long micros))) {
            return micros;
        }
        throw wrongType("timeout", "int64_param");
    }

    @Override
    default ParameterValue value(String name) {
        if (this instanceof Value(ParameterValue known)) {
            return known;
        }
        throw wrongType(name, "int64_param, bool_param, or string_param");
    }

    @Override
    default InferenceException reserved() {
        return invalid("parameter keys starting with '" + InferResponse.RESERVED_PREFIX
                + "' are reserved for Triton usage. Only the following keys starting with '"
                + InferResponse.RESERVED_PREFIX + "' are allowed: " + RequestParameterReader.EMPTY_FINAL_RESPONSE);
    }

    private static InferenceException wrongType(String name, String expected) {
        return invalid("invalid value type for '" + Quoted.text(name) + "' parameter, expected " + expected + ".");
    }

    private static InferenceException invalid(String text) {
        return new InferenceException(ErrorCode.INVALID_ARGUMENT, text);
    }
}
