package dev.nereid.server;

import static java.util.Objects.requireNonNull;

/**
 * An extension in a plugin other than a backend. Immutable.
 *
 * @param name the name of the repository agent, or the scheme of the storage
 */
public record PluginExtension(Kind kind, String name, String plugin) {
    /** The kinds of extensions. */
    public enum Kind {
        /** A repository agent. */
        AGENT,
        /** A storage of model repositories. */
        STORAGE
    }

    public PluginExtension {
        requireNonNull(kind, "kind");
        requireNonNull(name, "name");
        requireNonNull(plugin, "plugin");
    }
}
