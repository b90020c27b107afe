package dev.nereid.server;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.FatalErrorHandler;
import java.time.Duration;

/**
 * Options of fatal error handling and of the execution and load watchdogs. Immutable.
 *
 * @param executionLimit how long an execution may take until it is reported, unless the model says otherwise by its
 *     parameter {@code execution_watchdog_secs}; zero for any time
 * @param loadLimit how long the load of a model version, or an execution of its warm-up, may take until it is reported;
 *     zero for any time
 * @param fatalErrors is told of exhausted heap, metaspace and threads, on whichever thread that was noticed
 * @param liveAfterFatalErrors whether the server still counts as live after such an error; if not, which is the default,
 *     it is neither live nor ready from then on until it is closed, for a supervisor to start it again
 */
public record SupervisionOptions(
        Duration executionLimit, Duration loadLimit, FatalErrorHandler fatalErrors, boolean liveAfterFatalErrors) {
    /** What holds unless something else is said. */
    public static final SupervisionOptions DEFAULT =
            new SupervisionOptions(Duration.ofSeconds(30), Duration.ofMinutes(5), FatalErrorHandler.NONE, false);

    /** Checks the components. */
    public SupervisionOptions {
        requireNonNull(fatalErrors, "fatalErrors");
        requireNotNegative("executionLimit", executionLimit);
        requireNotNegative("loadLimit", loadLimit);
    }

    private static void requireNotNegative(String name, Duration limit) {
        if (limit.isNegative()) {
            throw new IllegalArgumentException(name + ": " + limit + " (expected: 0 or more)");
        }
    }
}
