package dev.nereid.server;

import dev.nereid.plugin.BackendRegistry;
import dev.nereid.plugin.PluginEnvironment;
import dev.nereid.plugin.StoragePlugin;
import dev.nereid.repository.files.FileCopies;
import dev.nereid.repository.storage.RemoteRepositories;
import dev.nereid.repository.storage.StorageOptions;
import dev.nereid.server.options.ServerOptions;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * The backends, the copies of files for them, the response cache and the remote repositories of a server. Owned by the server; {@link #close} closes
 * all of them.
 *
 * @param files the copies of models' files for backends
 * @param cache the response cache; empty for none
 */
record ServerPlugins(
        BackendRegistry backends, FileCopies files, Optional<ServerCache> cache, RemoteRepositories repositories)
        implements AutoCloseable {
    /**
     * Opens cache, repositories and backends, all or none. Blocks while the plugins do.
     *
     * @throws IllegalArgumentException if the cache or a repository cannot be opened
     */
    static ServerPlugins open(ServerOptions options, BuildInfo build) {
        PluginEnvironment environment = new PluginEnvironment(
                build.spi(),
                options.backendSettings(),
                options.directories().cacheRoot(),
                options.models().instances().processors(),
                options.environment());
        Optional<ServerCache> cache =
                options.scheduling().cache().map(responses -> ServerCache.open(responses, environment));
        Optional<RemoteRepositories> repositories = Optional.empty();
        Optional<BackendRegistry> registry = Optional.empty();
        boolean opened = false;
        try {
            StorageOptions storages = options.directories().remote();
            RemoteRepositories remote = RemoteRepositories.open(
                    storages, StoragePlugin.source(storages.environment(), storages.plugins(), environment));
            repositories = Optional.of(remote);
            BackendRegistry backends =
                    BackendRegistry.open(options.directories().plugins(), options.providers(), environment);
            registry = Optional.of(backends);
            FileCopies files = new FileCopies(environment.cacheRoot());
            files.exempt(remote::contains);
            ServerPlugins plugins = new ServerPlugins(backends, files, cache, remote);
            opened = true;
            environment.removeLeftovers(Instant.now()); // all that are in use are known by now
            return plugins;
        } finally {
            if (!opened) {
                cache.ifPresent(ServerCache::close);
                registry.ifPresent(BackendRegistry::close);
                repositories.ifPresent(RemoteRepositories::close);
            }
        }
    }

    /** Returns the repository agents and storages with their plugins. */
    List<PluginExtension> extensions() {
        List<PluginExtension> all = new ArrayList<>();
        backends.agentPlugins()
                .forEach((agent, plugin) -> all.add(new PluginExtension(PluginExtension.Kind.AGENT, agent, plugin)));
        for (String scheme : repositories.schemes()) {
            all.add(new PluginExtension(PluginExtension.Kind.STORAGE, scheme + "://", scheme));
        }
        return List.copyOf(all);
    }

    /** Closes all of it. Called once, after the last model was closed. */
    @Override
    public void close() {
        cache.ifPresent(ServerCache::close);
        backends.close();
        files.close();
        repositories.close();
    }
}
