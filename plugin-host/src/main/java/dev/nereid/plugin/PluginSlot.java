package dev.nereid.plugin;

import dev.nereid.plugin.jar.JarCopies;
import dev.nereid.plugin.jar.PluginDigest;
import dev.nereid.plugin.jar.PluginException;
import dev.nereid.plugin.jar.PluginManifest;
import dev.nereid.plugin.jar.PluginNatives;
import dev.nereid.plugin.jar.PluginSource;
import dev.nereid.plugin.jar.SpiVersion;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.ErrorCode;
import java.io.IOException;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A plugin that was found and checked. Loads it for the first lease, and drops its class loader after the last. Safe for
 * use by any thread.
 *
 * <p>A plugin with native libraries stays loaded until the server ends: the JVM binds a library that it loaded by JNI to
 * one class loader, and unloads it at some time after that was collected; until then no other class loader can load it.
 */
final class PluginSlot {
    private static final Logger LOG = LoggerFactory.getLogger(PluginSlot.class);

    /**
     * The names of the backends and repository agents in a plugin. Immutable.
     *
     * @param backends the names of its backends, each with its platforms
     */
    record Names(Map<String, Set<String>> backends, List<String> agents) {}

    /** Why a plugin is not replaced. */
    static final String RESTART =
            "plugin has changed and needs a restart of the server: it contains native libraries, and"
                    + " the JVM binds each of them to the class loader that loaded it first";

    private final PluginSource source;
    private final String digest;
    private final boolean isNative;
    private final CountedResource<Plugin> loaded;
    private final Jars jars;

    /** The stamp of its jars when their content was last compared with the content of this plugin. */
    private volatile String stamp;

    private volatile boolean needsRestart;

    /** The uses of the copies of the plugin's jars. */
    private interface Jars {
        /** Nothing. */
        Jars NONE = isReplaced -> {};

        /**
         * Ends the use of the jars by the slot.
         *
         * @param isReplaced whether the plugin is never loaded again, so that the copies of its jars are removed
         */
        void end(boolean isReplaced);
    }

    /**
     * Creates the slot of a plugin that is not loaded.
     *
     * @param digest the digest of its jars
     * @param stamp the {@linkplain PluginSource#stamp stamp} of its jars
     * @param isNative whether it contains native libraries
     */
    PluginSlot(
            PluginSource source,
            String digest,
            String stamp,
            boolean isNative,
            CountedResource.Lifecycle<Plugin> loading) {
        this(source, digest, stamp, isNative, loading, Jars.NONE);
    }

    private PluginSlot(
            PluginSource source,
            String digest,
            String stamp,
            boolean isNative,
            CountedResource.Lifecycle<Plugin> loading,
            Jars jars) {
        this.source = source;
        this.digest = digest;
        this.stamp = stamp;
        this.isNative = isNative;
        this.jars = jars;
        loaded = new CountedResource<>("plugin '" + source.name() + "'", loading, isNative);
    }

    /** Checks a plugin without loading it, and makes the copies of its jars. */
    static PluginSlot of(PluginSource source, PluginEnvironment environment) throws PluginException {
        String stamp = source.stamp(); // before the content: a later change is found by the next check
        String digest = digest(source);
        JarCopies copies = environment.copies();
        JarCopies.Copy copy = copies.use(source, digest);
        boolean isSound = false;
        try {
            PluginManifest.check(copy.source(), environment.spi(), Plugin.PROVIDERS);
            PluginNatives natives = PluginNatives.of(copy.source());
            natives.requireSameLibrary();
            Loading loading = new Loading(source, digest, environment.spi(), copies, copy, natives.advice());
            isSound = true;
            return new PluginSlot(source, digest, stamp, natives.isKept(), loading, loading);
        } finally {
            if (!isSound) {
                copy.close();
                copies.removeUnused(source, digest);
            }
        }
    }

    /**
     * Makes a plugin of a class of the program.
     *
     * @param directory the directory that the backend sees as its plugin's directory
     */
    static PluginSlot of(BackendProvider provider, Path directory) {
        String type = provider.getClass().getName();
        PluginSource source = new PluginSource(type, directory, List.of());
        return new PluginSlot(
                source, Integer.toHexString(type.hashCode()), source.stamp(), false, new OfProgram(source, provider));
    }

    static String digest(PluginSource source) throws PluginException {
        if (source.jars().isEmpty()) {
            throw withoutJars();
        }
        try {
            return PluginDigest.hash(source.jars());
        } catch (IOException e) {
            PluginManifest.requireReadable(source);
            throw new PluginException("its jars cannot be read: " + e.getMessage(), e);
        }
    }

    /** Returns the reason of a directory that is no plugin. */
    static PluginException withoutJars() {
        return new PluginException("no file *.jar in its directory (expected: the plugin's jars)");
    }

    String name() {
        return source.name();
    }

    /** Returns the plugin where it was found. */
    PluginSource source() {
        return source;
    }

    String digest() {
        return digest;
    }

    /** Returns whether the plugin was registered, or last seen, with these jars. */
    boolean hasStamp(String other) {
        return stamp.equals(other);
    }

    /** Records jars that need not be read again. */
    void saw(String other) {
        stamp = other;
    }

    /** Records a change that takes effect only after a restart. */
    void needsRestart() {
        needsRestart = true;
    }

    /** Returns the action that the operator has to take for the plugin; empty for none. */
    String notice() {
        return needsRestart ? RESTART : "";
    }

    /** Returns whether the plugin contains native libraries, and so is kept. */
    boolean isNative() {
        return isNative;
    }

    /** Loads the plugin unless it is loaded. Blocks meanwhile. */
    CountedResource.Lease<Plugin> acquire() {
        return loaded.acquire();
    }

    /** Reads the names of the plugin's backends and agents. Loads the plugin for that. */
    Names names() throws PluginException {
        Map<String, Set<String>> backends = new LinkedHashMap<>();
        try (CountedResource.Lease<Plugin> lease = acquire()) {
            lease.get().providers().forEach(provider -> backends.put(provider.name(), provider.platforms()));
            return new Names(
                    backends,
                    lease.get().agents().stream()
                            .map(IsolatedAgent.Provider::name)
                            .toList());
        } catch (BackendException e) {
            throw e.getCause() instanceof PluginException broken
                    ? broken
                    : new PluginException(String.valueOf(e.getMessage()), e);
        }
    }

    /**
     * A directory that a backend of the plugin runs. Immutable.
     *
     * @param name the name that it gives the backend of the directory
     */
    record Claim(String provider, String name) {}

    /** Asks the plugin whether it runs a directory as a backend. Loads the plugin for that. */
    Optional<Claim> claims(Path directory) throws PluginException {
        BackendException failure = null;
        try (CountedResource.Lease<Plugin> lease = acquire()) {
            for (IsolatedBackend.Provider provider : lease.get().providers()) {
                try {
                    Optional<String> claimed = provider.claims(directory);
                    if (claimed.isPresent()) {
                        return Optional.of(new Claim(provider.name(), claimed.get()));
                    }
                } catch (BackendException e) {
                    failure = failure == null ? e : failure;
                }
            }
            if (failure != null) {
                throw failure;
            }
            return Optional.empty();
        } catch (BackendException e) {
            throw e.getCause() instanceof PluginException broken
                    ? broken
                    : new PluginException(String.valueOf(e.getMessage()), e);
        }
    }

    /** Acquires the provider of a repository agent. Loads the plugin unless it is loaded. */
    AgentLease acquireAgent(String agent) {
        CountedResource.Lease<Plugin> lease = acquire();
        boolean found = false;
        try {
            AgentLease acquired = new AgentLease(lease.get().agent(agent), lease::close);
            found = true;
            return acquired;
        } finally {
            if (!found) {
                lease.close();
            }
        }
    }

    /** Drops the class loader, now or after the last lease. */
    void end() {
        loaded.end();
        jars.end(false);
    }

    /**
     * Drops the class loader, and then the copies of the jars, now or after the last lease. The plugin is not loaded
     * again.
     */
    void discard() {
        loaded.end();
        jars.end(true);
    }

    /** Loads a plugin from its copies and closes its class loader. Keeps the copies until the slot ends. */
    private static final class Loading implements CountedResource.Lifecycle<Plugin>, Jars {
        private final PluginSource source;
        private final String digest;
        private final SpiVersion spi;
        private final JarCopies copies;
        private final JarCopies.Copy ofSlot;

        /** The advice to the author of the plugin, until it is logged. */
        private final AtomicReference<Optional<String>> advice;

        private volatile boolean isReplaced;

        /** The copies that the loaded plugin reads; {@code null} while it is not loaded. One thread at a time. */
        private volatile JarCopies.@Nullable Copy ofPlugin;

        Loading(
                PluginSource source,
                String digest,
                SpiVersion spi,
                JarCopies copies,
                JarCopies.Copy ofSlot,
                Optional<String> advice) {
            this.advice = new AtomicReference<>(advice);
            this.source = source;
            this.digest = digest;
            this.spi = spi;
            this.copies = copies;
            this.ofSlot = ofSlot;
        }

        @Override
        public Plugin open() {
            JarCopies.Copy copy = copies.use(source, digest);
            boolean isOpen = false;
            try {
                Plugin plugin = Plugin.open(copy.source(), spi, () -> copies.hold(source, digest));
                advice.getAndSet(Optional.empty())
                        .ifPresent(text -> LOG.atWarn()
                                .addKeyValue("plugin", source.name())
                                .log("{} (plugin '{}')", text, source.name()));
                ofPlugin = copy;
                isOpen = true;
                return plugin;
            } catch (PluginException e) {
                throw new BackendException(
                        ErrorCode.UNAVAILABLE, "plugin '" + source.name() + "' is broken: " + e.reason(), e);
            } finally {
                if (!isOpen) {
                    end(copy);
                }
            }
        }

        @Override
        public void close(Plugin plugin) {
            plugin.close();
            JarCopies.Copy copy = ofPlugin;
            ofPlugin = null;
            end(copy);
        }

        @Override
        public void end(boolean replaced) {
            if (replaced) {
                isReplaced = true;
            }
            end(ofSlot);
        }

        /** Ends a use. The last one removes the copies of a plugin that was replaced. */
        private void end(JarCopies.@Nullable Copy copy) {
            if (copy != null) {
                copy.close();
            }
            if (isReplaced) {
                copies.removeUnused(source, digest);
            }
        }
    }

    /** Wraps a class of the program, which stays loaded. */
    private record OfProgram(PluginSource source, BackendProvider provider)
            implements CountedResource.Lifecycle<Plugin> {
        @Override
        public Plugin open() {
            try {
                return Plugin.of(source, provider);
            } catch (PluginException e) {
                throw new BackendException(ErrorCode.UNAVAILABLE, e.reason(), e);
            }
        }

        @Override
        public void close(Plugin plugin) {
            plugin.close();
        }
    }
}
