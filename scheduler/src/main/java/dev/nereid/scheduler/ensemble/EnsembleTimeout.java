package dev.nereid.scheduler.ensemble;

import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.time.Timeout;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** Reports that the time of one request is over while it waits. Confined to its {@link EnsembleRun}. */
final class EnsembleTimeout {
    private final EnsembleScope scope;
    private final CheckedRequest request;
    private final Consumer<EnsembleEvent> events;
    private @Nullable Timeout timeout;

    /**
     * Creates a timeout that is not started.
     *
     * @param events receives the event, on the thread of the timer
     */
    EnsembleTimeout(EnsembleScope scope, CheckedRequest request, Consumer<EnsembleEvent> events) {
        this.scope = scope;
        this.request = request;
        this.events = events;
    }

    /** Starts it, unless it was started before or the request has neither deadline nor timeout. */
    void start() {
        boolean hasDeadline = request.options().deadlineNanos().isPresent();
        if (timeout != null || (!hasDeadline && request.options().timeoutMicros() == 0)) {
            return;
        }
        EnsembleTime time = EnsembleTime.of(request);
        Timeout started = scope.timer().newTimeout(() -> events.accept(new EnsembleEvent.Expired(time.error())));
        timeout = started;
        started.scheduleAtLatest(time.endNanos());
    }

    /** Ends it: nothing is reported any more, unless that has begun. */
    void close() {
        if (timeout != null) {
            timeout.close();
        }
    }
}
