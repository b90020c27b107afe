package dev.nereid.plugin;

import dev.nereid.plugin.jar.PluginDigest;
import dev.nereid.plugin.jar.PluginSource;
import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import java.util.concurrent.Executor;

/**
 * A backend of a registered plugin, by name. Creates the backend for its first lease, and closes it after its last; it
 * holds a lease on the plugin meanwhile. Safe for use by any thread.
 */
final class BackendSlot {
    /**
     * An open backend. Immutable.
     *
     * @param backend the backend behind the plugin boundary
     * @param callbacks calls its code outside of executions
     * @param plugin keeps its plugin loaded
     * @param context the services that it got
     */
    record Opened(
            Backend backend,
            IsolatedCallbacks callbacks,
            CountedResource.Lease<Plugin> plugin,
            PluginBackendContext context) {}

    /**
     * A directory without jars that a plugin runs as a backend. Immutable.
     *
     * @param provider the name of the plugin's backend that creates this one
     * @param stamp the {@linkplain PluginSource#stamp stamp} of its files
     */
    record Claim(PluginSource directory, String provider, String stamp) {}

    /** The program of a backend in a directory, as the reference server names it. */
    private static final String PYTHON_PROGRAM = "model.py";

    private final String name;
    private final Optional<Claim> claim;
    private final PluginSlot plugin;
    private final PluginEnvironment environment;
    private final Executor actionThreads;
    private final CountedResource<Opened> opened;

    /**
     * Creates the slot of a closed backend.
     *
     * @param actionThreads runs actions of backends, each on a separate thread
     */
    BackendSlot(String name, PluginSlot plugin, PluginEnvironment environment, Executor actionThreads) {
        this(name, Optional.empty(), plugin, environment, actionThreads);
    }

    /**
     * Creates the slot of a closed backend.
     *
     * @param claim the directory from which the plugin creates it; empty for a backend of the plugin's jars
     * @param actionThreads runs actions of backends, each on a separate thread
     */
    BackendSlot(
            String name,
            Optional<Claim> claim,
            PluginSlot plugin,
            PluginEnvironment environment,
            Executor actionThreads) {
        this.name = name;
        this.claim = claim;
        this.actionThreads = actionThreads;
        this.plugin = plugin;
        this.environment = environment;
        opened = new CountedResource<>("backend '" + name + "'", new Creation(), plugin.isNative());
    }

    /** Acquires the backend. Blocks while it is being created. */
    BackendLease acquire() {
        return new BackendLease(opened.acquire(), plugin, digest(), runtime());
    }

    private String runtime() {
        return claim.map(claimed -> claimed.directory().directory().resolve(PYTHON_PROGRAM))
                .filter(Files::isRegularFile)
                .map(_ -> PYTHON_PROGRAM)
                .orElse("");
    }

    /** Returns the directory from which the plugin creates the backend; empty for a backend of the plugin's jars. */
    Optional<Claim> claim() {
        return claim;
    }

    /** Returns a digest of all from which the backend is made: the jars of its plugin, and the directory. */
    String digest() {
        return claim.map(claimed -> PluginDigest.hash(plugin.digest() + claimed.stamp()))
                .orElseGet(plugin::digest);
    }

    PluginSlot plugin() {
        return plugin;
    }

    String pluginName() {
        return plugin.name();
    }

    BackendStatus status() {
        try (CountedResource.Lease<Plugin> lease = plugin.acquire()) {
            String reason = provider(lease.get()).unavailable().orElse("");
            BackendStatus.State state =
                    reason.isEmpty() ? BackendStatus.State.AVAILABLE : BackendStatus.State.UNAVAILABLE;
            return new BackendStatus(name, plugin.name(), state, reason.isEmpty() ? plugin.notice() : reason);
        } catch (BackendException e) {
            return new BackendStatus(
                    name, plugin.name(), BackendStatus.State.UNAVAILABLE, String.valueOf(e.getMessage()));
        }
    }

    private IsolatedBackend.Provider provider(Plugin loaded) {
        return loaded.provider(claim.map(Claim::provider).orElse(name));
    }

    /** Closes the backend, now or after its last lease. */
    void end() {
        opened.end();
    }

    /** Creates and closes the backend. */
    private final class Creation implements CountedResource.Lifecycle<Opened> {
        @Override
        public Opened open() {
            CountedResource.Lease<Plugin> lease = plugin.acquire();
            boolean created = false;
            try {
                IsolatedBackend.Provider provider = provider(lease.get());
                String reason = provider.unavailable().orElse("");
                if (!reason.isEmpty()) {
                    throw new BackendException(
                            ErrorCode.UNAVAILABLE, "backend '" + name + "' is not available: " + reason);
                }
                PluginSource source = lease.get().source();
                Path directory =
                        claim.map(claimed -> claimed.directory().directory()).orElseGet(source::directory);
                PluginBackendContext context =
                        new PluginBackendContext(name, source, directory, plugin.digest(), environment);
                Backend backend = create(provider, context);
                created = true;
                return new Opened(backend, provider.callbacks(actionThreads), lease, context);
            } finally {
                if (!created) {
                    lease.close();
                }
            }
        }

        private static Backend create(IsolatedBackend.Provider provider, PluginBackendContext context) {
            try {
                return provider.create(context);
            } catch (BackendException e) {
                String obstacle =
                        context.obstacle().map(reason -> ": " + reason).orElse("");
                throw obstacle.isEmpty() ? e : new BackendException(e.code(), e.getMessage() + obstacle, e);
            }
        }

        @Override
        public void close(Opened resource) {
            try {
                resource.backend().close();
            } finally {
                resource.plugin().close();
            }
        }
    }
}
