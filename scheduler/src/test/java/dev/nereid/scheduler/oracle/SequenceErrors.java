package dev.nereid.scheduler.oracle;

import dev.nereid.api.InferenceException;
import dev.nereid.api.Quoted;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Sequence;

/** Creates the errors of sequences. They have the texts of the reference server where it has one. */
final class SequenceErrors {
    private SequenceErrors() {}

    static InferenceException batched(CheckedRequest request) {
        return invalid("inference request to model '" + request.model()
                + "' must specify batch-size 1 due to requirements of sequence batcher");
    }

    static InferenceException noId(CheckedRequest request) {
        return invalid("inference request to model '" + request.model()
                + "' must specify a non-zero or non-empty correlation ID");
    }

    static InferenceException notStarted(CheckedRequest request, Sequence.Id id) {
        return invalid("inference request for sequence " + text(id) + " to model '" + request.model()
                + "' must specify the START flag on the first request of the sequence");
    }

    /** The reference does not name the request here. */
    static InferenceException stopped() {
        return unavailable("Server is stopping, scheduler for model has stopped accepting new inference requests");
    }

    static InferenceException expired() {
        return unavailable("timeout of the corresponding sequence has been expired");
    }

    /** The instance of the sequence is gone, with the state that its backend kept. */
    static InferenceException instanceGone(CheckedRequest request, Sequence.Id id) {
        return unavailable("sequence " + text(id) + " of model '" + request.model() + "' version " + request.version()
                + " has ended: its instance failed beyond repair; start the sequence again");
    }

    private static InferenceException invalid(String problem) {
        return new InferenceException(ErrorCode.INVALID_ARGUMENT, problem);
    }

    private static InferenceException unavailable(String problem) {
        return new InferenceException(ErrorCode.UNAVAILABLE, problem);
    }

    /** Returns an id as clients and logs see it. */
    static String text(Sequence.Id id) {
        return switch (id) {
            case Sequence.Id.Numeric number -> Long.toUnsignedString(number.value());
            case Sequence.Id.Text text -> Quoted.text(text.value());
        };
    }
}
