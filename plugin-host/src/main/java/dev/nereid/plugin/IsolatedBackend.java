package dev.nereid.plugin;

import dev.nereid.plugin.boundary.PluginBoundary;
import dev.nereid.plugin.jar.PluginException;
import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelCompletion;
import dev.nereid.spi.ModelContext;
import java.nio.file.Path;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.Executor;
import java.util.regex.Pattern;

/**
 * Forwards to a plugin's backend through the plugin boundary. Immutable; as safe for concurrent use as the backend.
 */
final class IsolatedBackend implements Backend {
    private final Backend backend;
    private final PluginBoundary boundary;
    private final BackendTraits traits;

    /** Wraps a backend and reads its traits. */
    IsolatedBackend(Backend backend, PluginBoundary boundary) {
        this.backend = backend;
        this.boundary = boundary;
        traits = boundary.invoke("Backend.traits", backend::traits);
    }

    @Override
    public BackendTraits traits() {
        return traits;
    }

    @Override
    public Optional<ModelCompletion> complete(ModelContext context) {
        return boundary.invoke("Backend.complete", () -> backend.complete(context));
    }

    @Override
    public Model load(ModelContext context) {
        Model model = boundary.invoke("Backend.load", () -> backend.load(context));
        boolean isolated = false;
        try {
            IsolatedModel result = new IsolatedModel(model, boundary);
            isolated = true;
            return result;
        } finally {
            if (!isolated) {
                boundary.close("Model.close", model::close);
            }
        }
    }

    @Override
    public void close() {
        boundary.close("Backend.close", backend::close);
    }

    /** A backend provider of a plugin, with its name and platforms read once. Immutable. */
    static final class Provider implements BackendProvider {
        private static final Pattern NAME = Pattern.compile("[a-z0-9_-]+");
        private static final Pattern DIRECTORY_NAME = Pattern.compile("[A-Za-z0-9._-]+");

        private final BackendProvider provider;
        private final PluginBoundary boundary;
        private final String name;
        private final Set<String> platforms;

        private Provider(BackendProvider provider, PluginBoundary boundary, String name, Set<String> platforms) {
            this.provider = provider;
            this.boundary = boundary;
            this.name = name;
            this.platforms = platforms;
        }

        static Provider of(BackendProvider provider, PluginBoundary boundary) throws PluginException {
            String name = boundary.invoke("BackendProvider.name", provider::name);
            if (!NAME.matcher(name).matches()) {
                throw new PluginException(provider.getClass().getName() + ": name: '" + name
                        + "' (expected: lower-case letters, digits, _ and -)");
            }
            Set<String> platforms =
                    boundary.invoke("BackendProvider.platforms", () -> Set.copyOf(provider.platforms()));
            return new Provider(provider, boundary, name, platforms);
        }

        @Override
        public String name() {
            return name;
        }

        @Override
        public Set<String> platforms() {
            return platforms;
        }

        /**
         * Returns the provider's reason why the backend cannot work here. A provider that fails at that cannot either.
         */
        @Override
        public Optional<String> unavailable() {
            try {
                return boundary.invoke("BackendProvider.unavailable", provider::unavailable);
            } catch (BackendException e) {
                return Optional.of(String.valueOf(e.getMessage()));
            }
        }

        /**
         * {@inheritDoc}
         *
         * @throws BackendException if the provider fails, or returns something that cannot be a name
         */
        @Override
        public Optional<String> claims(Path directory) {
            Optional<String> claimed = boundary.invoke("BackendProvider.claims", () -> provider.claims(directory));
            claimed.filter(text -> !DIRECTORY_NAME.matcher(text).matches()).ifPresent(text -> {
                throw new BackendException(
                        ErrorCode.INVALID_ARGUMENT,
                        "backend name: '" + text + "' (expected: letters, digits, ., _ and -; given by backend '" + name
                                + "')");
            });
            return claimed;
        }

        /** Returns the callbacks of the backend; they run its actions on the given threads. */
        IsolatedCallbacks callbacks(Executor threads) {
            return new IsolatedCallbacks(boundary.executor(threads), boundary);
        }

        @Override
        public Backend create(BackendContext context) {
            Backend backend = boundary.invoke("BackendProvider.create", () -> provider.create(context));
            try {
                return new IsolatedBackend(backend, boundary);
            } catch (BackendException e) {
                boundary.close("Backend.close", backend::close);
                throw e;
            }
        }
    }
}
