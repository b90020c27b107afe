package dev.nereid.api;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.call.CallChain;
import dev.nereid.spi.Sequence;
import java.util.Optional;
import java.util.OptionalLong;

/**
 * Scheduling options of a request: priority, timeout, deadline, sequence, and the models that wait for it. Immutable.
 *
 * @param priority 1 for the highest, 0 for the model's default; unsigned
 * @param timeoutMicros how long the request may wait in a queue, in microseconds; 0 for the model's default; unsigned
 * @param deadlineNanos the deadline of the caller, on the scale of {@link System#nanoTime()}
 * @param sequence the position of the request in a sequence
 * @param callers the models that wait for this request; empty for the request of a client
 * @param callerOwnsInputs whether memory of an input belongs to the model or program that sends the request, and may be gone
 *     once the request is complete: then nothing may extend its life
 */
public record RequestOptions(
        long priority,
        long timeoutMicros,
        OptionalLong deadlineNanos,
        Optional<Sequence> sequence,
        CallChain callers,
        boolean callerOwnsInputs) {
    /** No priority, no timeout, no deadline, no sequence. */
    public static final RequestOptions DEFAULT = new RequestOptions(0, 0, OptionalLong.empty(), Optional.empty());

    /** Checks the components. */
    public RequestOptions {
        requireNonNull(deadlineNanos, "deadlineNanos");
        requireNonNull(sequence, "sequence");
        requireNonNull(callers, "callers");
    }

    /**
     * Creates the options of a client's request.
     *
     * @param priority 1 for the highest, 0 for the model's default; unsigned
     * @param timeoutMicros how long the request may wait in a queue, in microseconds; 0 for the model's default; unsigned
     * @param deadlineNanos the deadline of the caller, on the scale of {@link System#nanoTime()}
     * @param sequence the position of the request in a sequence
     */
    public RequestOptions(long priority, long timeoutMicros, OptionalLong deadlineNanos, Optional<Sequence> sequence) {
        this(priority, timeoutMicros, deadlineNanos, sequence, CallChain.NONE, false);
    }
}
