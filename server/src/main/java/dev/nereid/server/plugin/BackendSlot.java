package dev.nereid.server.plugin;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
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
     */
    record Opened(Backend backend, IsolatedCallbacks callbacks, CountedResource.Lease<Plugin> plugin) {}

    private final String name;
    private final PluginSlot plugin;
    private final PluginEnvironment environment;
    private final Executor actionThreads;
    private final CountedResource<Opened> opened;

    /**
     * Creates the slot of a closed backend.
     *
     * @param actionThreads runs actions of backends, each on a thread of its own
     */
    BackendSlot(String name, PluginSlot plugin, PluginEnvironment environment, Executor actionThreads) {
        this.name = name;
        this.actionThreads = actionThreads;
        this.plugin = plugin;
        this.environment = environment;
        opened = new CountedResource<>("backend '" + name + "'", new Creation(), plugin.isNative());
    }

    /** Acquires the backend. Blocks while it is being created. */
    BackendLease acquire() {
        return new BackendLease(opened.acquire(), plugin);
    }

    /** Returns the plugin of the backend. */
    PluginSlot plugin() {
        return plugin;
    }

    /** Returns the name of the plugin. */
    String pluginName() {
        return plugin.name();
    }

    BackendStatus status() {
        try (CountedResource.Lease<Plugin> lease = plugin.acquire()) {
            String reason = lease.get().provider(name).unavailable().orElse("");
            BackendStatus.State state =
                    reason.isEmpty() ? BackendStatus.State.AVAILABLE : BackendStatus.State.UNAVAILABLE;
            return new BackendStatus(name, plugin.name(), state, reason.isEmpty() ? plugin.notice() : reason);
        } catch (BackendException e) {
            return new BackendStatus(
                    name, plugin.name(), BackendStatus.State.UNAVAILABLE, String.valueOf(e.getMessage()));
        }
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
                IsolatedBackendProvider provider = lease.get().provider(name);
                String reason = provider.unavailable().orElse("");
                if (!reason.isEmpty()) {
                    throw new BackendException(
                            ErrorCode.UNAVAILABLE, "backend '" + name + "' is not available: " + reason);
                }
                Backend backend = create(
                        provider, new PluginBackendContext(name, lease.get().source(), plugin.digest(), environment));
                created = true;
                return new Opened(backend, provider.callbacks(actionThreads), lease);
            } finally {
                if (!created) {
                    lease.close();
                }
            }
        }

        private static Backend create(IsolatedBackendProvider provider, PluginBackendContext context) {
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
