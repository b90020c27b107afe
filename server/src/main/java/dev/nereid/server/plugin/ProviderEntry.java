package dev.nereid.server.plugin;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendProvider;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Pattern;

/**
 * A provider of a plugin, with what it said of itself once. Immutable.
 *
 * @param provider the provider
 * @param boundary the border to its plugin
 * @param name the name of its backend
 * @param platforms the legacy platforms that mean the backend
 */
record ProviderEntry(BackendProvider provider, PluginBoundary boundary, String name, Set<String> platforms) {
    private static final Pattern NAME = Pattern.compile("[a-z0-9_-]+");

    static ProviderEntry of(BackendProvider provider, PluginBoundary boundary)
            throws BackendException, PluginException {
        String name = boundary.call("BackendProvider.name", provider::name);
        if (!NAME.matcher(name).matches()) {
            throw new PluginException(provider.getClass().getName() + ": name: '" + name
                    + "' (expected: lower-case letters, digits, _ and -)");
        }
        Set<String> platforms = boundary.call("BackendProvider.platforms", () -> Set.copyOf(provider.platforms()));
        return new ProviderEntry(provider, boundary, name, platforms);
    }

    /** Asks the provider why the backend cannot work here; a provider that fails at that cannot either. */
    Optional<String> unavailable() {
        try {
            return boundary.call("BackendProvider.unavailable", provider::unavailable);
        } catch (BackendException e) {
            return Optional.of(String.valueOf(e.getMessage()));
        }
    }
}
