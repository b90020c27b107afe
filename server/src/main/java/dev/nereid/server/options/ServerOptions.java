package dev.nereid.server.options;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.FatalErrorHandler;
import dev.nereid.api.memory.GpuAccess;
import dev.nereid.plugin.cache.CacheOptions;
import dev.nereid.repository.storage.StorageOptions;
import dev.nereid.scheduler.admission.AdmissionLimits;
import dev.nereid.server.host.HostPolicies;
import dev.nereid.server.instance.GpuLoadLimits;
import dev.nereid.server.instance.InstanceOptions;
import dev.nereid.server.lifecycle.ModelLoadOptions;
import dev.nereid.server.lifecycle.ModelLoadOptions.LoadObserver;
import dev.nereid.server.memory.TensorMemoryBound;
import dev.nereid.spi.BackendProvider;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Options of a server, grouped by concern. Immutable but for the providers; the command line has the same defaults.
 *
 * {@snippet :
 * ServerOptions options = ServerOptions.of(Path.of("models"))
 *         .withPlugins(Path.of("plugins"))
 *         .with(o -> {
 *             o.loadThreads = 8;
 *             o.explicit("add_sub");
 *         });
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
     * Returns the default options of a server without plugins.
     *
     * @param modelRepositories directories that hold models; at least one
     * @throws IllegalArgumentException if there is none
     */
    public static ServerOptions of(Path... modelRepositories) {
        Builder builder = new Builder();
        builder.modelRepositories = List.of(modelRepositories);
        return builder.build();
    }

    /**
     * Returns these options with changes.
     *
     * @throws IllegalArgumentException if a value is out of its range, or a directory of plugins does not exist
     */
    public ServerOptions with(Consumer<Builder> change) {
        Builder builder = new Builder(this);
        change.accept(builder);
        return builder.build();
    }

    /**
     * Adds directories of plugins, behind the directories of earlier calls.
     *
     * @param plugins existing directories; the first of two plugins with backends of one name wins
     * @throws IllegalArgumentException if one of them does not exist
     */
    public ServerOptions withPlugins(Path... plugins) {
        return with(options -> options.plugins = Stream.concat(options.plugins.stream(), Stream.of(plugins))
                .distinct()
                .toList());
    }

    /**
     * Adds a setting of a backend, or replaces its value.
     *
     * @param backend the name of the backend; empty for all
     * @param key the setting; {@code default-max-batch-size} is 4 for all backends unless set
     */
    public ServerOptions withBackendSetting(String backend, String key, String value) {
        return with(options -> options.backendSetting(backend, key, value));
    }

    /**
     * The options as fields; the command line has the same defaults. The records describe them: {@link ServerOptions},
     * {@link ServerDirectories}, {@link ModelLoadOptions}, {@link InstanceOptions}, {@link MemoryOptions}, {@link
     * SchedulingOptions}, {@link LifecycleOptions}, {@link SupervisionOptions}, {@link ModelControlOptions}, {@link
     * DemandOptions} and {@link ProtocolOptions}. Confined to one thread.
     */
    public static final class Builder {
        public List<Path> modelRepositories = new ArrayList<>();
        public List<Path> plugins = new ArrayList<>();
        public Path pluginCache = Path.of("");
        public StorageOptions remote = StorageOptions.NONE;
        public boolean hasNamespaces;

        public boolean autoComplete = true;
        public String configName = "";
        public int loadThreads = 4;
        public AdmissionLimits modelLimits = AdmissionLimits.NONE;
        public BiConsumer<String, String> warnings = (_, _) -> {};
        public LoadObserver observer = LoadObserver.NONE;

        public int processors = Runtime.getRuntime().availableProcessors();
        public List<Integer> gpus = List.of();
        public boolean parallelInstances;
        public HostPolicies hostPolicies = HostPolicies.NONE;
        public GpuLoadLimits gpuLimits = GpuLoadLimits.NONE;

        public Map<String, Map<String, String>> backendSettings = new HashMap<>();
        public List<BackendProvider> providers = List.of();
        public Map<String, String> environment = Map.of();

        public OptionalLong tensorMemoryBytes = OptionalLong.empty();
        public OptionalLong idleBytes = OptionalLong.empty();
        public Optional<Duration> returnAfter = Optional.empty();
        public boolean poisonFreed;
        public boolean clientSharedMemory;
        public GpuAccess gpuAccess = GpuAccess.NONE;

        public Optional<AdmissionLimits> limits = Optional.empty();
        public Optional<RateLimitOptions> rateLimit = Optional.empty();
        public Optional<CacheOptions> cache = Optional.empty();
        public DelayOptions delay = DelayOptions.NONE;

        public boolean exitOnError = true;
        public boolean strictReadiness = true;
        public Duration exitTimeout = Duration.ofSeconds(30);

        public Duration executionLimit = Duration.ofSeconds(30);
        public Duration loadLimit = Duration.ofMinutes(5);
        public FatalErrorHandler fatalErrors = FatalErrorHandler.NONE;
        public int pluginThreads = 256;
        public int outputCheckInterval = 256;
        public boolean strictOutputs;

        public ModelControlMode controlMode = ModelControlMode.NONE;
        public List<String> startupModels = new ArrayList<>();
        public Duration pollInterval = Duration.ofSeconds(15);
        public Duration stabilityWindow = Duration.ofSeconds(1);
        public int loadRetries;

        public long memoryBudget;
        public Duration maxWait = Duration.ofSeconds(60);
        public int maxWaiting = 4096;
        public long maxWaitingBytes = 256L << 20;

        public String serverId = "nereid";
        public boolean clientErrorsAsBadRequest;

        /** Starts with the defaults, without model repositories. */
        public Builder() {}

        private Builder(ServerOptions from) {
            modelRepositories = new ArrayList<>(from.directories.modelRepositories());
            plugins = new ArrayList<>(from.directories.plugins());
            pluginCache = from.directories.pluginCache();
            remote = from.directories.remote();
            hasNamespaces = from.directories.hasNamespaces();

            autoComplete = from.models.autoComplete();
            configName = from.models.configName();
            loadThreads = from.models.loadThreads();
            modelLimits = from.models.limits();
            warnings = from.models.warnings();
            observer = from.models.observer();

            InstanceOptions instances = from.models.instances();
            processors = instances.processors();
            gpus = instances.gpus();
            parallelInstances = instances.parallel();
            hostPolicies = instances.hostPolicies();
            gpuLimits = instances.gpuLimits();

            from.backendSettings.forEach((backend, values) -> backendSettings.put(backend, new HashMap<>(values)));
            providers = from.providers;
            environment = from.environment;

            from.memory.limit().ifPresent(limit -> tensorMemoryBytes = OptionalLong.of(limit.bytes()));
            idleBytes = from.memory.idleBytes();
            returnAfter = from.memory.returnAfter();
            poisonFreed = from.memory.poisonFreed();
            clientSharedMemory = from.memory.clientSharedMemory();
            gpuAccess = from.memory.gpus();

            limits = from.scheduling.limits();
            rateLimit = from.scheduling.rateLimit();
            cache = from.scheduling.cache();
            delay = from.scheduling.delay();

            exitOnError = from.lifecycle.exitOnError();
            strictReadiness = from.lifecycle.strictReadiness();
            exitTimeout = from.lifecycle.exitTimeout();

            SupervisionOptions supervision = from.lifecycle.supervision();
            executionLimit = supervision.executionLimit();
            loadLimit = supervision.loadLimit();
            fatalErrors = supervision.fatalErrors();
            pluginThreads = supervision.pluginLimits().threads();
            outputCheckInterval = supervision.pluginLimits().outputCheckInterval();
            strictOutputs = supervision.pluginLimits().strictOutputs();

            ModelControlOptions control = from.lifecycle.control();
            controlMode = control.mode();
            startupModels = new ArrayList<>(control.startupModels());
            pollInterval = control.pollInterval();
            stabilityWindow = control.stabilityWindow();
            loadRetries = control.loadRetries();

            memoryBudget = control.demand().memoryBudget();
            maxWait = control.demand().maxWait();
            maxWaiting = control.demand().maxWaiting();
            maxWaitingBytes = control.demand().maxWaitingBytes();

            serverId = from.protocol.serverId();
            clientErrorsAsBadRequest = from.protocol.clientErrorsAsBadRequest();
        }

        /** Loads these models at the start and others at the request of clients; {@code *} alone for all. */
        public void explicit(String... models) {
            controlMode = ModelControlMode.EXPLICIT;
            startupModels = List.of(models);
        }

        /** Loads models on demand, and these at the start for good; {@code *} alone for all. */
        public void onDemand(String... pinned) {
            controlMode = ModelControlMode.DEMAND;
            startupModels = List.of(pinned);
        }

        /** Limits the requests in flight to all models together and the bytes of their inputs; 0 for no limit. */
        public void limits(long requests, long bytes) {
            limits = Optional.of(new AdmissionLimits(requests, bytes));
        }

        /** Limits the requests in flight to each version of a model and the bytes of their inputs; 0 for no limit. */
        public void modelLimits(long requests, long bytes) {
            modelLimits = new AdmissionLimits(requests, bytes);
        }

        /** Adds a setting of a backend, or replaces its value; the name of the backend is empty for all. */
        public void backendSetting(String backend, String key, String value) {
            backendSettings.computeIfAbsent(backend, _ -> new HashMap<>()).put(key, value);
        }

        /**
         * Returns the options.
         *
         * @throws IllegalArgumentException if a value is out of its range, or a directory of plugins does not exist
         */
        public ServerOptions build() {
            return new ServerOptions(
                    new ServerDirectories(modelRepositories, plugins, pluginCache, remote, hasNamespaces),
                    new ModelLoadOptions(
                            autoComplete,
                            configName,
                            loadThreads,
                            new InstanceOptions(processors, gpus, parallelInstances, hostPolicies, gpuLimits),
                            modelLimits,
                            warnings,
                            observer),
                    backendSettings,
                    memory(),
                    new SchedulingOptions(limits, rateLimit, cache, delay),
                    new LifecycleOptions(exitOnError, strictReadiness, exitTimeout, supervision(), control()),
                    new ProtocolOptions(serverId, clientErrorsAsBadRequest),
                    providers,
                    environment);
        }

        private MemoryOptions memory() {
            Optional<TensorMemoryBound> limit =
                    tensorMemoryBytes.stream().mapToObj(TensorMemoryBound::of).findFirst();
            return new MemoryOptions(limit, idleBytes, returnAfter, poisonFreed, clientSharedMemory, gpuAccess);
        }

        private SupervisionOptions supervision() {
            return new SupervisionOptions(
                    executionLimit,
                    loadLimit,
                    fatalErrors,
                    new SupervisionOptions.PluginLimits(pluginThreads, outputCheckInterval, strictOutputs));
        }

        private ModelControlOptions control() {
            return new ModelControlOptions(
                    controlMode,
                    startupModels,
                    pollInterval,
                    stabilityWindow,
                    loadRetries,
                    new DemandOptions(memoryBudget, maxWait, maxWaiting, maxWaitingBytes));
        }
    }

    /**
     * Environment variables with secrets. The server, its launcher, and the storages and caches of its distribution read
     * them. Static functions only.
     */
    private static final class SecretVariables {
        private static final Set<String> NAMES = Set.of(
                "AWS_ACCESS_KEY_ID",
                "AWS_CONTAINER_AUTHORIZATION_TOKEN",
                "AWS_SECRET_ACCESS_KEY",
                "AWS_SESSION_TOKEN",
                "JAVA_TOOL_OPTIONS", // passwords of key stores
                "JDK_JAVA_OPTIONS",
                "NEREID_CACHE_CONFIG",
                "NEREID_GRPC_RESTRICTED_PROTOCOL",
                "NEREID_HEADER", // of client commands, with the key of a restricted protocol
                "NEREID_HTTP_RESTRICTED_API",
                "NEREID_JAVA_OPTIONS",
                "TRITONCACHE_REDIS_PASSWORD",
                "TRITONCACHE_REDIS_USERNAME",
                "TRITON_CLOUD_CREDENTIAL_PATH");

        private SecretVariables() {}

        static Map<String, String> without(Map<String, String> variables) {
            return variables.entrySet().stream()
                    .filter(variable -> !NAMES.contains(variable.getKey()))
                    .collect(Collectors.toUnmodifiableMap(Map.Entry::getKey, Map.Entry::getValue));
        }
    }
}
