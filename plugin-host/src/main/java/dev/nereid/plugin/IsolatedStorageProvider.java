package dev.nereid.plugin;

import dev.nereid.plugin.boundary.PluginBoundary;
import dev.nereid.spi.storage.ModelStorage;
import dev.nereid.spi.storage.StorageContext;
import dev.nereid.spi.storage.StorageProvider;

/** A plugin's storage provider behind its boundary. Immutable. */
final class IsolatedStorageProvider implements StorageProvider {
    private final StorageProvider provider;
    private final PluginBoundary boundary;
    private final Runnable closePlugin;
    private final String scheme;

    /**
     * Wraps a provider and reads its scheme.
     *
     * @param closePlugin closes the plugin, after the storage that the provider opens
     */
    IsolatedStorageProvider(StorageProvider provider, PluginBoundary boundary, Runnable closePlugin) {
        this.provider = provider;
        this.boundary = boundary;
        this.closePlugin = closePlugin;
        scheme = boundary.invoke("StorageProvider.scheme", provider::scheme);
    }

    @Override
    public String scheme() {
        return scheme;
    }

    @Override
    public ModelStorage open(StorageContext context) {
        ModelStorage storage = boundary.invoke("StorageProvider.open", () -> provider.open(context));
        boolean wrapped = false;
        try {
            ModelStorage isolated = new IsolatedStorage(storage, boundary, closePlugin);
            wrapped = true;
            return isolated;
        } finally {
            if (!wrapped) {
                boundary.close("ModelStorage.close", storage::close);
            }
        }
    }
}
