package dev.nereid.plugin;

import dev.nereid.api.BackendCallbacks;
import dev.nereid.plugin.boundary.KeptObjects;
import dev.nereid.plugin.jar.PluginThreads;
import dev.nereid.spi.Backend;
import java.util.List;

/**
 * One use of a backend, which is open as long as it has one. Safe for use by any thread. Refers to nothing of the plugin
 * once closed.
 */
public final class BackendLease implements AutoCloseable {
    private final CountedResource.Lease<BackendSlot.Opened> lease;
    private final PluginSlot plugin;
    private final String digest;
    private final String runtime;

    BackendLease(CountedResource.Lease<BackendSlot.Opened> lease, PluginSlot plugin, String digest, String runtime) {
        this.runtime = runtime;
        this.lease = lease;
        this.plugin = plugin;
        this.digest = digest;
    }

    /** Returns the backend, shared by all of its leases. It must not be used after the close. */
    public Backend backend() {
        return lease.get().backend();
    }

    /**
     * Returns the callbacks of the backend, which run its code outside of executions. Each action, such as of
     * {@link dev.nereid.spi.ResponseSender#onReady}, runs on a separate thread. All run with the context class loader
     * of the plugin.
     */
    public BackendCallbacks callbacks() {
        return lease.get().callbacks();
    }

    /** Returns the plugin of the backend and its threads; none once the lease is closed. */
    public PluginThreads threads() {
        return lease.find()
                .map(opened -> opened.callbacks().boundary())
                .map(boundary -> PluginThreads.of(boundary.plugin(), boundary.loader()))
                .orElse(PluginThreads.NONE);
    }

    /** Creates a holder of objects that the backend keeps during a load. To be closed before the lease. */
    public KeptObjects newKeptObjects() {
        return new KeptObjects(lease.get().callbacks().boundary());
    }

    /**
     * Returns the digest of the plugin's jars, and of the directory from which it makes the backend.
     *
     * @return hexadecimal digits, other ones for a plugin or a directory of other content
     */
    public String digest() {
        return digest;
    }

    /**
     * Returns the program that the plugin runs as this backend, as configurations name it ({@code runtime}).
     *
     * @return {@code model.py} for a directory with such a file; empty for a backend of the plugin's jars, and for other
     *     programs
     */
    public String runtime() {
        return runtime;
    }

    /** Returns the action that the operator has to take for the plugin, such as a restart; empty for none. */
    public String notice() {
        return plugin.notice();
    }

    /**
     * Returns settings of the backend that are probably misspelt, once for all of its leases. The backend has read the ones
     * that it knows, as after the load of a model.
     *
     * @return a warning for each; empty for later calls
     */
    public List<String> misspeltSettings() {
        return lease.get().context().misspeltSettings();
    }

    /** Returns another lease on the backend, owned by the caller. This one is open until the call returns. */
    public BackendLease share() {
        return new BackendLease(lease.share(), plugin, digest, runtime);
    }

    /**
     * Releases the backend. The last lease closes the backend and its plugin, and blocks meanwhile. Later calls do
     * nothing.
     */
    @Override
    public void close() {
        lease.close();
    }
}
