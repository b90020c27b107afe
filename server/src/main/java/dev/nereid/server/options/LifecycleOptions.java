package dev.nereid.server.options;

import static java.util.Objects.requireNonNull;

import java.time.Duration;

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
    public LifecycleOptions {
        requireNonNull(exitTimeout, "exitTimeout");
        requireNonNull(supervision, "supervision");
        requireNonNull(control, "control");
    }
}
