package dev.nereid.scheduler;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.FatalErrorHandler;
import dev.nereid.scheduler.time.Watchdog;
import java.time.Duration;
import java.util.Optional;

/**
 * Configures fatal error handling and the watchdog limits of a model. Immutable.
 *
 * @param fatalErrors handles errors after which the process may not be able to serve
 * @param watchdog checks executions, loads and event loops; empty for none
 * @param executionLimit the time limit of an execution; zero for none
 * @param loadLimit the time limit of a load, and of one execution of its warm-up; zero for none
 * @param outputCheckInterval one response in this many is checked for outputs that change too late; 0 for none
 * @param strictOutputs whether outputs that do not fit the configuration are errors, for tests of models; otherwise
 *     they are sent or dropped, and reported once
 */
public record Supervision(
        FatalErrorHandler fatalErrors,
        Optional<Watchdog> watchdog,
        Duration executionLimit,
        Duration loadLimit,
        int outputCheckInterval,
        boolean strictOutputs) {
    /** No handler and no limits. */
    public static final Supervision NONE =
            new Supervision(FatalErrorHandler.NONE, Optional.empty(), Duration.ZERO, Duration.ZERO, 0, false);

    public Supervision {
        requireNonNull(fatalErrors, "fatalErrors");
        requireNonNull(watchdog, "watchdog");
        requireNonNull(executionLimit, "executionLimit");
        requireNonNull(loadLimit, "loadLimit");
    }

    /** Returns the same supervision with another time limit of an execution; zero for none. */
    public Supervision withExecutionLimit(Duration changed) {
        return new Supervision(fatalErrors, watchdog, changed, loadLimit, outputCheckInterval, strictOutputs);
    }
}
