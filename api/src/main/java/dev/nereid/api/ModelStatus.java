package dev.nereid.api;

import static java.util.Objects.requireNonNull;

import java.util.OptionalLong;

/**
 * State of one version of a model, with the reason. Immutable.
 *
 * @param name the model's name
 * @param version the version; empty for a model without known versions
 * @param state the state
 * @param reason the reason why the version is not ready, or its problem while it is; may be empty
 */
public record ModelStatus(String name, OptionalLong version, State state, String reason) {
    /** The reason of a version that was unloaded on purpose. It does not make a server unready. */
    public static final String UNLOADED = "unloaded";

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

    /**
     * Returns whether the version was unloaded on purpose.
     *
     * @return whether it is unavailable for this reason
     */
    public boolean isUnloaded() {
        return state == State.UNAVAILABLE && reason.equals(UNLOADED);
    }
}
