package dev.nereid.scheduler.ensemble;

import dev.nereid.api.InferenceException;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.time.Timeout;
import dev.nereid.scheduler.time.Timer;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** Reports that one request expired while it waited. Confined to its {@link EnsembleRun}. */
final class EnsembleTimeout {
    private final Timer timer;
    private final CheckedRequest request;
    private final Consumer<InferenceException> expired;
    private @Nullable Timeout timeout;

    /**
     * Creates a timeout that is not started.
     *
     * @param expired receives the error, on the thread of the timer
     */
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
        EnsembleTime time = EnsembleTime.of(request);
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
}
