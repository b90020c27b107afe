package dev.nereid.plugin;

import static java.util.Objects.requireNonNull;

/**
 * Status of a plugin, or of one backend in it. Immutable.
 *
 * @param backend the name of the backend; empty for a broken plugin
 * @param plugin the name of the plugin: its directory, or its jar without the extension
 * @param reason why the backend cannot be used, or needs a restart of the server; empty otherwise
 */
public record BackendStatus(String backend, String plugin, State state, String reason) {
    /** The states of a backend. */
    public enum State {
        /** Can be used. */
        AVAILABLE,
        /** Cannot work on this machine, as it reports itself. */
        UNAVAILABLE,
        /** The plugin is broken. */
        BROKEN
    }

    public BackendStatus {
        requireNonNull(backend, "backend");
        requireNonNull(plugin, "plugin");
        requireNonNull(state, "state");
        requireNonNull(reason, "reason");
    }
}
