package dev.nereid.server.options;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.FatalErrorHandler;
import java.time.Duration;

/**
 * Options of fatal error handling and of the execution and load watchdogs. Immutable.
 *
 * @param executionLimit the duration after which an execution is reported, unless the model sets another one by its
 *     parameter {@code execution_watchdog_secs}; zero for never
 * @param loadLimit the duration after which the load of a model version, or an execution of its warm-up, is reported;
 *     zero for never
 * @param fatalErrors notified of exhausted heap, metaspace and threads, on the thread that noticed
 * @param liveAfterFatalErrors whether the server stays live after such an error; if not, which is the default, it is
 *     neither live nor ready from then on until it is closed, for a supervisor to start it again
 */
public record SupervisionOptions(
        Duration executionLimit, Duration loadLimit, FatalErrorHandler fatalErrors, boolean liveAfterFatalErrors) {
    /** The defaults of the command line, without a handler of fatal errors. */
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
