package dev.nereid.server.lifecycle;

import dev.nereid.api.ModelStatus;
import dev.nereid.spi.ErrorCode;

/** Load state of one model version. */
sealed interface VersionState {
    /** The reason of a version that was unloaded on purpose. It does not make a server unready. */
    String UNLOADED = "unloaded";

    /** The version is loading. */
    record Loading() implements VersionState {}

    /**
     * The version is ready to serve.
     *
     * @param model the served model
     */
    record Ready(ServedModel model) implements VersionState {}

    /**
     * The version is not served.
     *
     * @param reason why not
     */
    record Unavailable(String reason) implements VersionState {
        /** Describes a load that failed as the reference server does. The status is first, then the message. */
        static Unavailable of(ErrorCode code, String message) {
            return new Unavailable(status(code) + ": " + message);
        }

        private static String status(ErrorCode code) {
            return switch (code) {
                case UNKNOWN -> "Unknown";
                case INTERNAL -> "Internal";
                case NOT_FOUND -> "Not found";
                case INVALID_ARGUMENT -> "Invalid argument";
                case UNAVAILABLE -> "Unavailable";
                case UNSUPPORTED -> "Unsupported";
                case ALREADY_EXISTS -> "Already exists";
                case CANCELLED -> "Cancelled";
            };
        }
    }

    /** The state as clients see it. */
    default ModelStatus.State state() {
        return switch (this) {
            case Loading() -> ModelStatus.State.LOADING;
            case Ready(ServedModel model) -> model.state();
            case Unavailable(String reason) -> ModelStatus.State.UNAVAILABLE;
        };
    }

    /**
     * Returns the reason why the version is not served. It may also be the problems of its instances; empty if there
     * are none.
     */
    default String reason() {
        return switch (this) {
            case Loading() -> "";
            case Ready(ServedModel model) -> model.scheduler().problems();
            case Unavailable(String reason) -> reason;
        };
    }
}
