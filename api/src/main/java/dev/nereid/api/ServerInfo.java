package dev.nereid.api;

import static java.util.Objects.requireNonNull;

import java.util.List;

/**
 * What a server says of itself. Immutable.
 *
 * @param name the server's name
 * @param version the server's version
 * @param extensions the names of the protocol extensions that it speaks
 */
public record ServerInfo(String name, String version, List<String> extensions) {
    /** Checks and copies the components. */
    public ServerInfo {
        requireNonNull(name, "name");
        requireNonNull(version, "version");
        extensions = List.copyOf(extensions);
    }
}
