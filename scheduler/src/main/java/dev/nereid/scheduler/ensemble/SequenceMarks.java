package dev.nereid.scheduler.ensemble;

import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.Sequence;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads and writes positions in sequences that steps give their responses. They apply to the steps that read the
 * responses, and to the responses of the ensemble. Static functions only.
 */
final class SequenceMarks {
    private static final Logger LOG = LoggerFactory.getLogger(SequenceMarks.class);
    private static final String ID = "sequence_id";
    private static final String START = "sequence_start";
    private static final String END = "sequence_end";

    private SequenceMarks() {}

    /**
     * Reads the mark of a response.
     *
     * @param inherited the mark of the request, which counts if the response has none
     * @param position the position of the request to the ensemble
     * @throws InferenceException {@link ErrorCode#INVALID_ARGUMENT} if a parameter has another type
     */
    static TensorValue.@Nullable Mark of(
            InferResponse response, TensorValue.@Nullable Mark inherited, Optional<Sequence> position) {
        Map<String, ParameterValue> parameters = response.parameters();
        if (!parameters.containsKey(ID) && !parameters.containsKey(START) && !parameters.containsKey(END)) {
            return inherited;
        }
        Sequence own = inherited == null ? position.orElse(null) : inherited.sequence();
        Sequence.Id id = parameters.containsKey(ID)
                ? id(parameters.get(ID))
                : own == null ? new Sequence.Id.Numeric(0) : own.id();
        boolean start = flag(START, parameters.get(START));
        boolean end = flag(END, parameters.get(END));
        boolean isNone = id.equals(new Sequence.Id.Numeric(0)) && !start && !end;
        return new TensorValue.Mark(isNone ? null : new Sequence(id, start, end));
    }

    private static Sequence.Id id(@Nullable ParameterValue value) {
        return switch (value) {
            case ParameterValue.Int(long number) -> new Sequence.Id.Numeric(number);
            case ParameterValue.Text(String text) -> new Sequence.Id.Text(text);
            case null, default ->
                throw invalid("expected parameter 'sequence_id' to be TRITONSERVER_PARAMETER_INT or"
                        + " TRITONSERVER_PARAMETER_STRING");
        };
    }

    private static boolean flag(String name, @Nullable ParameterValue value) {
        return switch (value) {
            case null -> false;
            case ParameterValue.Bool(boolean flag) -> flag;
            case ParameterValue.Int _, ParameterValue.Real _, ParameterValue.Text _ ->
                throw invalid("expect parameter '" + name + "' to be TRITONSERVER_PARAMETER_BOOL");
        };
    }

    private static InferenceException invalid(String problem) {
        return new InferenceException(ErrorCode.INVALID_ARGUMENT, problem);
    }

    /** Returns the mark of a step with two inputs. The first one counts. */
    static TensorValue.@Nullable Mark join(
            TensorValue.@Nullable Mark first, TensorValue.@Nullable Mark second, String model) {
        if (first == null) {
            return second;
        }
        if (second != null && !first.equals(second)) {
            LOG.atError()
                    .addKeyValue("model", model)
                    .addKeyValue("used", String.valueOf(first.sequence()))
                    .addKeyValue("dropped", String.valueOf(second.sequence()))
                    .log(
                            "different response parameters of a sequence are set for the inputs of a step (model '{}', used {}, dropped {})",
                            model,
                            String.valueOf(first.sequence()),
                            String.valueOf(second.sequence()));
        }
        return first;
    }

    /** Returns the position in a sequence to which a mark refers. */
    static Optional<Sequence> position(TensorValue.@Nullable Mark mark, Optional<Sequence> own) {
        return mark == null ? own : Optional.ofNullable(mark.sequence());
    }

    /** Puts the parameters of a position into a response of the ensemble; they are always present. */
    static void put(InferenceResponse response, Optional<Sequence> position) {
        Sequence own = position.orElse(null);
        switch (own == null ? null : own.id()) {
            case null -> response.parameter(ID, 0);
            case Sequence.Id.Numeric(long number) -> response.parameter(ID, number);
            case Sequence.Id.Text(String text) -> response.parameter(ID, text);
        }
        response.parameter(START, own != null && own.start());
        response.parameter(END, own != null && own.end());
    }
}
