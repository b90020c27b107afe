package dev.nereid.api;

import static java.util.Objects.requireNonNull;

import java.util.List;

/**
 * Metadata of a server: its name, version and protocol extensions. Immutable.
 *
 * @param name the server's name
 * @param version the server's version
 * @param extensions the names of the protocol extensions that it supports
 */
public record ServerMetadata(String name, String version, List<String> extensions) {
    /** Checks and copies the components. */
    public ServerMetadata {
        requireNonNull(name, "name");
        requireNonNull(version, "version");
        extensions = List.copyOf(extensions);
    }
}
