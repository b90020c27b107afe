package dev.nereid.server.lifecycle;

import dev.nereid.api.ModelStatus;
import dev.nereid.spi.ErrorCode;

/** Load state of one model version. */
public sealed interface VersionState {
    /**
     * The version is loading.
     *
     * @param isCounted whether the server is not ready meanwhile
     */
    record Loading(boolean isCounted) implements VersionState {}

    /** The version is ready to serve. */
    record Ready(Generation generation) implements VersionState {}

    /**
     * The version is not loaded, and will be for the next request. Clients see it as ready.
     *
     * @param isCounted whether the server is not ready if the load fails
     */
    record OnDemand(boolean isCounted) implements VersionState {}

    /** The version serves no new requests, and completes the requests that it has. */
    record Unloading(Generation generation) implements VersionState {}

    /**
     * The version is not served.
     *
     * @param reason why not
     * @param isCounted whether the server is not ready for that
     */
    record Unavailable(String reason, boolean isCounted) implements VersionState {
        public static Unavailable unloaded() {
            return new Unavailable(ModelStatus.UNLOADED, false);
        }

        /**
         * Creates the same state with another effect on the readiness.
         *
         * @param counted whether the server is not ready for that
         */
        public Unavailable counted(boolean counted) {
            return new Unavailable(reason, counted);
        }

        /**
         * Describes a load that failed as the reference server does. The status is first, then the message. The readiness
         * of the server counts it.
         *
         * @param code the kind of failure
         */
        public static Unavailable of(ErrorCode code, String message) {
            return new Unavailable(status(code) + ": " + message, true);
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

    /**
     * Returns whether the readiness of the server depends on the load of this version. It does not for a load that a
     * client asked for.
     */
    default boolean isCounted() {
        return false;
    }

    /** Returns whether the version was unloaded on purpose. */
    default boolean isUnloaded() {
        return this instanceof Unavailable(String reason, boolean _) && reason.equals(ModelStatus.UNLOADED);
    }

    /** The state as clients see it. */
    default ModelStatus.State state() {
        return switch (this) {
            case Loading(boolean _) -> ModelStatus.State.LOADING;
            case OnDemand(boolean _) -> ModelStatus.State.READY;
            case Ready(Generation generation) -> generation.model().state();
            case Unloading(Generation generation) -> ModelStatus.State.UNLOADING;
            case Unavailable(String _, boolean _) -> ModelStatus.State.UNAVAILABLE;
        };
    }

    /**
     * Returns the reason why the version is not served. It may also be the problems of its instances; empty if there
     * are none.
     */
    default String reason() {
        return switch (this) {
            case Loading(boolean _), OnDemand(boolean _) -> "";
            case Ready(Generation generation) -> generation.model().problems();
            case Unloading(Generation generation) -> "";
            case Unavailable(String reason, boolean _) -> reason;
        };
    }
}
