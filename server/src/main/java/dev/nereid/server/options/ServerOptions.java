package dev.nereid.server.options;

import static java.util.Objects.requireNonNull;

import dev.nereid.server.lifecycle.ModelLoadOptions;
import dev.nereid.spi.BackendProvider;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Options of a server, grouped by concern. Immutable but for the providers; the command line has the same defaults.
 *
 * {@snippet :
 * ServerOptions options = ServerOptions.of(Path.of("models"))
 *         .withPlugins(Path.of("plugins"))
 *         .withModels(models -> models.withLoadThreads(8))
 *         .withMemory(memory -> memory.withLimit(1L << 30));
 * }
 *
 * @param directories where models and plugins lie
 * @param models how models are loaded
 * @param backendSettings the settings of backends by the names of the backends; settings for all backends are under an
 *     empty name
 * @param memory limits and debugging of tensor memory
 * @param scheduling load limits, rate limiter and response cache
 * @param lifecycle start, readiness, supervision and shutdown
 * @param protocol the server's name and its error codes
 * @param providers the providers of backends that are classes of the program; the server finds the providers of plugins
 * @param environment the environment variables that backends pass to the processes that they start, without the
 *     server's secrets, such as keys of restricted protocols and credentials of storages; empty by default
 */
public record ServerOptions(
        ServerDirectories directories,
        ModelLoadOptions models,
        Map<String, Map<String, String>> backendSettings,
        MemoryOptions memory,
        SchedulingOptions scheduling,
        LifecycleOptions lifecycle,
        ProtocolOptions protocol,
        List<BackendProvider> providers,
        Map<String, String> environment) {
    /** Checks and copies the components. */
    public ServerOptions {
        requireNonNull(directories, "directories");
        requireNonNull(models, "models");
        requireNonNull(memory, "memory");
        requireNonNull(scheduling, "scheduling");
        requireNonNull(lifecycle, "lifecycle");
        requireNonNull(protocol, "protocol");
        providers = List.copyOf(providers);
        environment = SecretVariables.without(environment);
        backendSettings = backendSettings.entrySet().stream()
                .collect(Collectors.toUnmodifiableMap(Map.Entry::getKey, backend -> Map.copyOf(backend.getValue())));
    }

    /**
     * Creates the options of a server that has all backends in plugins.
     *
     * @param directories where models and plugins lie
     * @param models how models are loaded
     * @param backendSettings the settings of backends by the names of the backends; settings for all backends are under
     *     an empty name
     * @param memory limits and debugging of tensor memory
     * @param scheduling load limits, rate limiter and response cache
     * @param lifecycle start, readiness, supervision and shutdown
     * @param protocol the server's name and its error codes
     */
    public ServerOptions(
            ServerDirectories directories,
            ModelLoadOptions models,
            Map<String, Map<String, String>> backendSettings,
            MemoryOptions memory,
            SchedulingOptions scheduling,
            LifecycleOptions lifecycle,
            ProtocolOptions protocol) {
        this(directories, models, backendSettings, memory, scheduling, lifecycle, protocol, List.of(), Map.of());
    }

    /**
     * Returns the default options of a server without plugins.
     *
     * @param modelRepositories directories that hold models; at least one
     * @return the options
     * @throws IllegalArgumentException if there is none
     */
    public static ServerOptions of(Path... modelRepositories) {
        return new ServerOptions(
                ServerDirectories.of(List.of(modelRepositories)),
                ModelLoadOptions.DEFAULT,
                Map.of(),
                MemoryOptions.DEFAULT,
                SchedulingOptions.DEFAULT,
                LifecycleOptions.DEFAULT,
                ProtocolOptions.DEFAULT);
    }

    /**
     * Adds directories of plugins, behind the directories of earlier calls.
     *
     * @param plugins existing directories; the first of two plugins with backends of one name wins
     * @return the changed options
     * @throws IllegalArgumentException if one of them does not exist
     */
    public ServerOptions withPlugins(Path... plugins) {
        return withDirectories(old -> old.withPlugins(Stream.concat(old.plugins().stream(), Stream.of(plugins))
                .distinct()
                .toList()));
    }

    /**
     * Replaces the providers of backends that are classes of the program. They need no jar and have the class loader that
     * they came with; the server calls them through the same boundary as plugins.
     *
     * @param providers the providers, each of a backend with a different name; the names take precedence over plugins'
     * @return the changed options
     */
    public ServerOptions withProviders(BackendProvider... providers) {
        return new ServerOptions(
                directories,
                models,
                backendSettings,
                memory,
                scheduling,
                lifecycle,
                protocol,
                List.of(providers),
                environment);
    }

    /**
     * Replaces the environment variables that backends pass to the processes that they start.
     *
     * @param variables the variables, such as {@link System#getenv()} returns; secrets of the server are left out
     * @return the changed options
     */
    public ServerOptions withEnvironment(Map<String, String> variables) {
        return new ServerOptions(
                directories, models, backendSettings, memory, scheduling, lifecycle, protocol, providers, variables);
    }

    /**
     * Adds a setting of a backend, or replaces its value.
     *
     * @param backend the name of the backend; empty for all
     * @param key the setting; {@code default-max-batch-size} is 4 for all backends unless set
     * @return the changed options
     */
    public ServerOptions withBackendSetting(String backend, String key, String value) {
        Map<String, String> settings = new HashMap<>(backendSettings.getOrDefault(backend, Map.of()));
        settings.put(key, value);
        Map<String, Map<String, String>> changed = new HashMap<>(backendSettings);
        changed.put(backend, settings);
        return new ServerOptions(
                directories, models, changed, memory, scheduling, lifecycle, protocol, providers, environment);
    }

    /**
     * Changes the directories of models and plugins.
     *
     * @param change returns the new directories for the present ones
     * @return the changed options
     */
    public ServerOptions withDirectories(UnaryOperator<ServerDirectories> change) {
        return new ServerOptions(
                change.apply(directories),
                models,
                backendSettings,
                memory,
                scheduling,
                lifecycle,
                protocol,
                providers,
                environment);
    }

    /**
     * Changes how models are loaded.
     *
     * @param change returns the new options for the present ones
     * @return the changed options
     */
    public ServerOptions withModels(UnaryOperator<ModelLoadOptions> change) {
        return new ServerOptions(
                directories,
                change.apply(models),
                backendSettings,
                memory,
                scheduling,
                lifecycle,
                protocol,
                providers,
                environment);
    }

    /**
     * Changes the options of tensor memory.
     *
     * @param change returns the new options for the present ones
     * @return the changed options
     */
    public ServerOptions withMemory(UnaryOperator<MemoryOptions> change) {
        return new ServerOptions(
                directories,
                models,
                backendSettings,
                change.apply(memory),
                scheduling,
                lifecycle,
                protocol,
                providers,
                environment);
    }

    /**
     * Changes load limits, rate limiter and response cache.
     *
     * @param change returns the new options for the present ones
     * @return the changed options
     */
    public ServerOptions withScheduling(UnaryOperator<SchedulingOptions> change) {
        return new ServerOptions(
                directories,
                models,
                backendSettings,
                memory,
                change.apply(scheduling),
                lifecycle,
                protocol,
                providers,
                environment);
    }

    /**
     * Changes start, readiness, supervision and shutdown.
     *
     * @param change returns the new options for the present ones
     * @return the changed options
     */
    public ServerOptions withLifecycle(UnaryOperator<LifecycleOptions> change) {
        return new ServerOptions(
                directories,
                models,
                backendSettings,
                memory,
                scheduling,
                change.apply(lifecycle),
                protocol,
                providers,
                environment);
    }

    /**
     * Changes the server's name and its error codes.
     *
     * @param change returns the new options for the present ones
     * @return the changed options
     */
    public ServerOptions withProtocol(UnaryOperator<ProtocolOptions> change) {
        return new ServerOptions(
                directories,
                models,
                backendSettings,
                memory,
                scheduling,
                lifecycle,
                change.apply(protocol),
                providers,
                environment);
    }
}
