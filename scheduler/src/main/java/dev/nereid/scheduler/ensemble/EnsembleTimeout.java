package dev.nereid.scheduler.ensemble;

import dev.nereid.api.InferenceException;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.request.SchedulerErrors;
import dev.nereid.scheduler.time.Timeout;
import dev.nereid.scheduler.time.Timer;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** Reports that one request expired while it waited. Confined to its {@link EnsembleRun}. */
final class EnsembleTimeout {
    private final Timer timer;
    private final CheckedRequest request;
    private final Consumer<InferenceException> expired;
    private @Nullable Timeout timeout;

    /** Creates a timeout that is not started. The thread of the timer passes the error to {@code expired}. */
    EnsembleTimeout(Timer timer, CheckedRequest request, Consumer<InferenceException> expired) {
        this.timer = timer;
        this.request = request;
        this.expired = expired;
    }

    /** Starts the timeout, unless it was started before or the request has no deadline and no timeout. */
    void start() {
        boolean hasDeadline = request.options().deadlineNanos().isPresent();
        if (timeout != null || (!hasDeadline && request.options().timeoutMicros() == 0)) {
            return;
        }
        Expiry time = Expiry.of(request);
        Timeout started = timer.newTimeout(() -> expired.accept(time.error()));
        timeout = started;
        started.scheduleAtLatest(time.endNanos());
    }

    /** Ends the timeout: nothing is reported any more, unless the report has begun. */
    void close() {
        if (timeout != null) {
            timeout.close();
        }
    }

    /** The time at which a request expires, on the scale of {@link System#nanoTime()}, and its error. Immutable. */
    private record Expiry(long endNanos, InferenceException error) {
        /** The longest timeout that is added to a time. */
        private static final long MAX_MICROS = TimeUnit.DAYS.toMicros(365);

        /** Returns the earlier of deadline and timeout of a request that has one of them. */
        static Expiry of(CheckedRequest request) {
            long timeout = request.options().timeoutMicros();
            long limited = timeout < 0 || timeout > MAX_MICROS ? MAX_MICROS : timeout; // unsigned
            long expires = request.arrivedNanos() + TimeUnit.MICROSECONDS.toNanos(limited);
            if (request.options().deadlineNanos().isEmpty()) {
                return new Expiry(expires, SchedulerErrors.timedOut());
            }
            long deadline = request.options().deadlineNanos().getAsLong();
            return timeout == 0 || deadline - expires <= 0
                    ? new Expiry(deadline, SchedulerErrors.cancelled())
                    : new Expiry(expires, SchedulerErrors.timedOut());
        }
    }
}
