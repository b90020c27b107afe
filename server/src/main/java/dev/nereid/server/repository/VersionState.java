package dev.nereid.server.repository;

import dev.nereid.api.ModelStatus;

/** How far one version of a model is. */
sealed interface VersionState {
    /** The reason of a version that was unloaded on purpose; it does not make a server unready. */
    String UNLOADED = "unloaded";

    /** On its way to be served. */
    record Loading() implements VersionState {}

    /**
     * Served.
     *
     * @param model what serves it
     */
    record Ready(ServedModel model) implements VersionState {}

    /**
     * Not served.
     *
     * @param reason why not
     */
    record Unavailable(String reason) implements VersionState {}

    /** The state as clients see it. */
    default ModelStatus.State state() {
        return switch (this) {
            case Loading() -> ModelStatus.State.LOADING;
            case Ready(ServedModel model) -> model.state();
            case Unavailable(String reason) -> ModelStatus.State.UNAVAILABLE;
        };
    }

    /** Why the version is not served, or which of its instances are in trouble; empty if there is nothing to say. */
    default String reason() {
        return switch (this) {
            case Loading() -> "";
            case Ready(ServedModel model) -> model.scheduler().trouble();
            case Unavailable(String reason) -> reason;
        };
    }
}
