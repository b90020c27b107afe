package dev.nereid.plugin;

import dev.nereid.plugin.boundary.PluginBoundary;
import dev.nereid.spi.storage.ModelStorage;
import dev.nereid.spi.storage.StorageContext;
import dev.nereid.spi.storage.StoragePage;
import dev.nereid.spi.storage.StorageProvider;
import dev.nereid.spi.storage.StoredObject;
import java.io.OutputStream;
import java.nio.file.Path;
import java.util.Optional;

/**
 * Forwards to a plugin's storage through the plugin boundary. Owns the plugin. Immutable; safe for use by any thread.
 */
final class IsolatedStorage implements ModelStorage {
    private final ModelStorage storage;
    private final PluginBoundary boundary;
    private final Runnable closePlugin;
    private final Optional<Path> localDirectory;

    /** Wraps a storage and reads its local directory. */
    IsolatedStorage(ModelStorage storage, PluginBoundary boundary, Runnable closePlugin) {
        this.storage = storage;
        this.boundary = boundary;
        this.closePlugin = closePlugin;
        localDirectory = boundary.invoke("ModelStorage.localDirectory", storage::localDirectory);
    }

    @Override
    public StoragePage list(String prefix, String continuation) {
        return boundary.invoke("ModelStorage.list", () -> storage.list(prefix, continuation));
    }

    @Override
    public void read(StoredObject object, OutputStream content) {
        boundary.invoke("ModelStorage.read", () -> {
            storage.read(object, content);
            return true;
        });
    }

    @Override
    public Optional<Path> localDirectory() {
        return localDirectory;
    }

    @Override
    public void close() {
        boundary.close("ModelStorage.close", storage::close);
        closePlugin.run();
    }

    /** A plugin's storage provider behind its boundary. Immutable. */
    static final class Provider implements StorageProvider {
        private final StorageProvider provider;
        private final PluginBoundary boundary;
        private final Runnable closePlugin;
        private final String scheme;

        /**
         * Wraps a provider and reads its scheme.
         *
         * @param closePlugin closes the plugin, after the storage that the provider opens
         */
        Provider(StorageProvider provider, PluginBoundary boundary, Runnable closePlugin) {
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
}
