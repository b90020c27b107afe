package dev.nereid.server.options;

import static java.util.Objects.requireNonNull;

import java.time.Duration;
import java.util.function.UnaryOperator;

/**
 * Options of start, readiness, supervision and shutdown. Immutable.
 *
 * @param exitOnError whether {@link dev.nereid.server.NereidServer#start} fails if a model cannot be loaded
 * @param strictReadiness whether the server is ready only if every model is; otherwise it is once the loads of the start
 *     have ended, however they did
 * @param exitTimeout how long {@link dev.nereid.server.NereidServer#close} waits for requests to end
 * @param supervision fatal errors and watchdogs
 * @param control loading and unloading while the server runs
 */
public record LifecycleOptions(
        boolean exitOnError,
        boolean strictReadiness,
        Duration exitTimeout,
        SupervisionOptions supervision,
        ModelControlOptions control) {
    /** The defaults of the command line. */
    public static final LifecycleOptions DEFAULT = new LifecycleOptions(
            true, true, Duration.ofSeconds(30), SupervisionOptions.DEFAULT, ModelControlOptions.DEFAULT);

    /** Checks the components. */
    public LifecycleOptions {
        requireNonNull(exitTimeout, "exitTimeout");
        requireNonNull(supervision, "supervision");
        requireNonNull(control, "control");
    }

    /**
     * Replaces whether the start fails if a model cannot be loaded.
     *
     * @param exit {@code true} to fail
     * @return the changed options
     */
    public LifecycleOptions withExitOnError(boolean exit) {
        return new LifecycleOptions(exit, strictReadiness, exitTimeout, supervision, control);
    }

    /**
     * Replaces whether the server is ready only if every model is.
     *
     * @param strict {@code true} to require every model
     * @return the changed options
     */
    public LifecycleOptions withStrictReadiness(boolean strict) {
        return new LifecycleOptions(exitOnError, strict, exitTimeout, supervision, control);
    }

    /**
     * Replaces the exit timeout.
     *
     * @param timeout how long {@link dev.nereid.server.NereidServer#close} waits for requests to end
     * @return the changed options
     */
    public LifecycleOptions withExitTimeout(Duration timeout) {
        return new LifecycleOptions(exitOnError, strictReadiness, timeout, supervision, control);
    }

    /**
     * Replaces the supervision.
     *
     * @param options fatal errors and watchdogs
     * @return the changed options
     */
    public LifecycleOptions withSupervision(SupervisionOptions options) {
        return new LifecycleOptions(exitOnError, strictReadiness, exitTimeout, options, control);
    }

    /**
     * Changes loading and unloading while the server runs.
     *
     * @param change returns the new options for the present ones
     * @return the changed options
     */
    public LifecycleOptions withControl(UnaryOperator<ModelControlOptions> change) {
        return new LifecycleOptions(exitOnError, strictReadiness, exitTimeout, supervision, change.apply(control));
    }
}
