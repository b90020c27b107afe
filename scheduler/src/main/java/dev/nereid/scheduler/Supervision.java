package dev.nereid.scheduler;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.FatalErrorHandler;
import dev.nereid.scheduler.time.Watchdog;
import java.time.Duration;
import java.util.Optional;

/**
 * Configures fatal error handling and the watchdog limits of a model. Immutable.
 *
 * @param fatalErrors is told of errors after which the process may not be able to serve
 * @param watchdog looks at executions, loads and event loops; empty for none
 * @param executionLimit how long an execution may take; zero for any time
 * @param loadLimit how long a load, or one execution of its warm-up, may take; zero for any time
 */
public record Supervision(
        FatalErrorHandler fatalErrors, Optional<Watchdog> watchdog, Duration executionLimit, Duration loadLimit) {
    /** Nobody is told, and nothing is reported. */
    public static final Supervision NONE =
            new Supervision(FatalErrorHandler.NONE, Optional.empty(), Duration.ZERO, Duration.ZERO);

    /** Checks the components. */
    public Supervision {
        requireNonNull(fatalErrors, "fatalErrors");
        requireNonNull(watchdog, "watchdog");
        requireNonNull(executionLimit, "executionLimit");
        requireNonNull(loadLimit, "loadLimit");
    }

    /**
     * Returns the same supervision with another limit for executions.
     *
     * @param changed how long an execution may take; zero for any time
     * @return the changed supervision
     */
    public Supervision withExecutionLimit(Duration changed) {
        return new Supervision(fatalErrors, watchdog, changed, loadLimit);
    }
}
