package dev.nereid.server.lifecycle;

import dev.nereid.api.ModelStatus;
import dev.nereid.spi.ErrorCode;

/** Load state of one model version. */
public sealed interface VersionState {
    /** The reason of a version that was unloaded on purpose. It does not make a server unready. */
    String UNLOADED = "unloaded";

    /** The version is loading. */
    record Loading() implements VersionState {}

    /**
     * The version is ready to serve.
     *
     * @param generation its generation
     */
    record Ready(Generation generation) implements VersionState {}

    /** The version is not loaded, and will be for the next request. Clients see it as ready. */
    record OnDemand() implements VersionState {}

    /**
     * The version serves no new requests, and completes those that it has.
     *
     * @param generation its generation
     */
    record Unloading(Generation generation) implements VersionState {}

    /**
     * The version is not served.
     *
     * @param reason why not
     */
    record Unavailable(String reason) implements VersionState {
        /**
         * Describes a load that failed as the reference server does. The status is first, then the message.
         *
         * @param code the kind of failure
         * @param message the text
         * @return the state
         */
        public static Unavailable of(ErrorCode code, String message) {
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
            case OnDemand() -> ModelStatus.State.READY;
            case Ready(Generation generation) -> generation.model().state();
            case Unloading(Generation generation) -> ModelStatus.State.UNLOADING;
            case Unavailable(String reason) -> ModelStatus.State.UNAVAILABLE;
        };
    }

    /**
     * Returns the reason why the version is not served. It may also be the problems of its instances; empty if there
     * are none.
     */
    default String reason() {
        return switch (this) {
            case Loading(), OnDemand() -> "";
            case Ready(Generation generation) -> generation.model().problems();
            case Unloading(Generation generation) -> "";
            case Unavailable(String reason) -> reason;
        };
    }
}
