package dev.nereid.scheduler.ensemble;

import dev.nereid.api.InferenceException;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.request.SchedulerErrors;
import java.util.concurrent.TimeUnit;

/**
 * The time at which a request expires, and its error. Immutable.
 *
 * @param endNanos the time, on the scale of {@link System#nanoTime()}
 * @param error the error with which the request fails then
 */
record EnsembleTime(long endNanos, InferenceException error) {
    /** The longest timeout that is added to a time. */
    private static final long MAX_MICROS = TimeUnit.DAYS.toMicros(365);

    /** Returns the earlier of deadline and timeout of a request that has one of them. */
    static EnsembleTime of(CheckedRequest request) {
        long timeout = request.options().timeoutMicros();
        long limited = timeout < 0 || timeout > MAX_MICROS ? MAX_MICROS : timeout; // unsigned
        long expires = request.arrivedNanos() + TimeUnit.MICROSECONDS.toNanos(limited);
        if (request.options().deadlineNanos().isEmpty()) {
            return new EnsembleTime(expires, SchedulerErrors.timedOut());
        }
        long deadline = request.options().deadlineNanos().getAsLong();
        return timeout == 0 || deadline - expires <= 0
                ? new EnsembleTime(deadline, SchedulerErrors.cancelled())
                : new EnsembleTime(expires, SchedulerErrors.timedOut());
    }
}
