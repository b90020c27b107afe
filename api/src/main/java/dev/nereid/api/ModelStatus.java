package dev.nereid.api;

import static java.util.Objects.requireNonNull;

import java.util.OptionalLong;

/**
 * State of one version of a model, with the reason. Immutable.
 *
 * @param name the model's name
 * @param version the version, or empty for a model of which no version is known
 * @param state the state
 * @param reason why the version is not ready, or what is wrong with it while it is; empty if there is nothing to say
 */
public record ModelStatus(String name, OptionalLong version, State state, String reason) {
    /** The states of a version. */
    public enum State {
        /** Never loaded. */
        UNKNOWN,
        /** Serves. */
        READY,
        /** Failed to load, or was unloaded. */
        UNAVAILABLE,
        /** On its way to {@link #READY}. */
        LOADING,
        /** Ends its last requests. */
        UNLOADING
    }

    /** Checks the components. */
    public ModelStatus {
        requireNonNull(name, "name");
        requireNonNull(version, "version");
        requireNonNull(state, "state");
        requireNonNull(reason, "reason");
    }
}
