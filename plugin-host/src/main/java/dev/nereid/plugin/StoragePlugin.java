package dev.nereid.plugin;

import dev.nereid.plugin.jar.PluginException;
import dev.nereid.plugin.jar.PluginSource;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.storage.ModelStorage;
import dev.nereid.spi.storage.StorageContext;
import dev.nereid.spi.storage.StorageProvider;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/** Loads the plugin of a remote storage and opens a model repository with it. Static functions only. */
public final class StoragePlugin {
    private static final String SCHEME_END = "://";

    /** The scheme of the storage plugin that Nereid comes with. */
    private static final String OWN_SCHEME = "s3";

    private StoragePlugin() {}

    /** Returns {@link #open} as a function of the URLs of remote model repositories. */
    public static Function<String, ModelStorage> source(
            Map<String, String> variables, List<Path> directories, PluginEnvironment environment) {
        return url -> open(url, variables, directories, environment);
    }

    /**
     * Opens a remote model repository. Blocks while the plugin does. Each repository has a separate class loader.
     *
     * @param url the URL of the repository; its scheme is the name of the plugin's directory or jar
     * @param directories the directories of storage plugins, in the order of their precedence; missing ones are skipped
     * @param environment the version of the SPI that the plugin is checked against, and the directory for copies of its
     *     jars
     * @return the storage, owned by the caller; its close ends the plugin too
     * @throws IllegalArgumentException if there is no plugin for the scheme, or if it is broken, or if it refuses the
     *     URL or a setting
     */
    public static ModelStorage open(
            String url, Map<String, String> variables, List<Path> directories, PluginEnvironment environment) {
        int end = url.indexOf(SCHEME_END);
        String scheme = url.substring(0, Math.max(0, end));
        PluginSource source = NamedPlugin.find(scheme, directories)
                .orElseThrow(() -> new IllegalArgumentException("model repository '" + url + "': no plugin for '"
                        + scheme + SCHEME_END + "' (expected: a directory, or the URL of an installed storage); "
                        + advice(scheme) + " as directory '" + scheme + "' in one of " + directories));
        try {
            return open(source, new Context(url, Map.copyOf(variables), PluginLogger.ofStorage(scheme)), environment);
        } catch (PluginException e) {
            throw new IllegalArgumentException("model repository '" + url + "': " + e.reason(), e);
        }
    }

    /** Returns advice on a plugin for a scheme. Plugins of other vendors have any name. */
    private static String advice(String scheme) {
        return scheme.equals(OWN_SCHEME)
                ? "install the plugin nereid-storage-" + scheme
                : "Nereid has a plugin for '" + OWN_SCHEME + SCHEME_END
                        + "' alone: copy the models to a directory, or install a plugin of others";
    }

    private static ModelStorage open(PluginSource source, StorageContext context, PluginEnvironment environment)
            throws PluginException {
        NamedPlugin<StorageProvider> plugin =
                NamedPlugin.load(source, environment, StorageProvider.class, StorageProvider::scheme);
        boolean opened = false;
        try {
            ModelStorage storage =
                    new IsolatedStorage.Provider(plugin.provider(), plugin.boundary(), plugin.close()).open(context);
            opened = true;
            return storage;
        } catch (BackendException e) {
            throw new PluginException(String.valueOf(e.getMessage()), e);
        } finally {
            if (!opened) {
                plugin.close().run();
            }
        }
    }

    /** One repository, and services of the server for its storage. Immutable. */
    private record Context(String url, Map<String, String> environment, System.Logger logger)
            implements StorageContext {
        /** Never shows the environment. */
        @Override
        public String toString() {
            return url;
        }
    }
}
