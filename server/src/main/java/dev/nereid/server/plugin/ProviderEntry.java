package dev.nereid.server.plugin;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendProvider;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Pattern;

/** A plugin's provider behind its boundary, with its name and platforms, read once. Immutable. */
final class ProviderEntry implements BackendProvider {
    private static final Pattern NAME = Pattern.compile("[a-z0-9_-]+");

    private final BackendProvider provider;
    private final PluginBoundary boundary;
    private final String name;
    private final Set<String> platforms;

    private ProviderEntry(BackendProvider provider, PluginBoundary boundary, String name, Set<String> platforms) {
        this.provider = provider;
        this.boundary = boundary;
        this.name = name;
        this.platforms = platforms;
    }

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

    @Override
    public String name() {
        return name;
    }

    @Override
    public Set<String> platforms() {
        return platforms;
    }

    /** Asks the provider why the backend cannot work here; a provider that fails at that cannot either. */
    @Override
    public Optional<String> unavailable() {
        try {
            return boundary.call("BackendProvider.unavailable", provider::unavailable);
        } catch (BackendException e) {
            return Optional.of(String.valueOf(e.getMessage()));
        }
    }

    @Override
    public Backend create(BackendContext context) throws BackendException {
        Backend backend = boundary.call("BackendProvider.create", () -> provider.create(context));
        try {
            return new IsolatedBackend(backend, boundary);
        } catch (BackendException e) {
            boundary.close("Backend.close", backend::close);
            throw e;
        }
    }
}
