package dev.nereid.distribution.flags;

import dev.nereid.api.InferenceException;
import dev.nereid.api.memory.GpuAccess;
import dev.nereid.distribution.flags.FlagValue.BackendSetting;
import dev.nereid.distribution.process.CommandContext;
import dev.nereid.distribution.process.StartException;
import dev.nereid.distribution.report.MemoryReport;
import dev.nereid.server.NereidServer;
import dev.nereid.server.cache.CacheOptions;
import dev.nereid.server.instance.InstanceOptions;
import dev.nereid.server.lifecycle.ModelLoadOptions;
import dev.nereid.server.memory.TensorMemoryBound;
import dev.nereid.server.options.DelayOptions;
import dev.nereid.server.options.LifecycleOptions;
import dev.nereid.server.options.ProtocolOptions;
import dev.nereid.server.options.SchedulingOptions;
import dev.nereid.server.options.ServerDirectories;
import dev.nereid.server.options.ServerOptions;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * Flags of the server: models, backends, readiness and shutdown. Written by the command line reader, then only read.
 */
public final class ServerFlags {
    /** The directories of models, in the order of the command line. */
    public final List<Path> repositories = new ArrayList<>();

    /** {@code true} if the server exits when a model fails to load at the start. */
    public boolean exitOnError = true;

    private final List<Path> backendDirectories = new ArrayList<>();
    private final List<BackendSetting> backendSettings = new ArrayList<>();
    private final ModelControlFlags control = new ModelControlFlags();
    private final CacheFlags cache = new CacheFlags();
    private final GpuFlags gpu = new GpuFlags();
    private final HostFlags host = new HostFlags();
    private final AdmissionFlags admission = new AdmissionFlags();
    private final MemoryFlags memory = new MemoryFlags();
    private final PluginCacheFlags pluginCache = new PluginCacheFlags();
    private final RateLimitFlags rateLimit = new RateLimitFlags();
    private final ErrorFlags errors = new ErrorFlags();
    private final SupervisionFlags supervision = new SupervisionFlags();
    private final StorageFlags storage = new StorageFlags();
    private String id = "nereid";
    private boolean strictReadiness = true;
    private boolean withCompletion = true;
    private boolean strictConfig;
    private boolean clientSharedMemory;
    private String modelConfigName = "";
    private int loadThreads = 4;
    private Duration exitTimeout = Duration.ofSeconds(30);

    /** Adds the flags that set these fields. */
    public void declare(Flags flags) {
        declareModels(flags);
        declareLoading(flags);
        admission.declare(flags);
        memory.declare(flags);
        gpu.declare(flags);
        errors.declare(flags);
        supervision.declare(flags);
        flags.add("--id", FlagValue.text("NAME"), id, v -> id = v).help("The server name in its metadata.");
        flags.add("--strict-readiness", FlagValue.TRUTH, strictReadiness, v -> strictReadiness = v)
                .help("Whether the server is ready only while all its models are; otherwise it is when the loads of"
                        + " the start have ended, also if one failed.");
        flags.add("--allow-client-shm", FlagValue.TRUTH, clientSharedMemory, v -> clientSharedMemory = v)
                .help("Whether clients may share memory with the server.");
        flags.add("--exit-timeout-secs", FlagValue.SECONDS, exitTimeout, v -> exitTimeout = v)
                .help("How long requests in progress may take when the server stops.");
    }

    private void declareModels(Flags flags) {
        flags.add("--model-repository", FlagValue.REPOSITORY, this::addRepository)
                .help("A model repository: a directory with a directory for each model, or the URL of a remote one,"
                        + " as in s3://bucket/models. May be given several times.")
                .or("--model-store");
        flags.add("--exit-on-error", FlagValue.TRUTH, exitOnError, v -> exitOnError = v)
                .help("Whether the server exits if a model fails to load at the start.");
        control.declare(flags);
    }

    /** Adds the flags on which the load of a model depends: configurations, plugins and features. */
    public void declareLoading(Flags flags) {
        flags.toggle("--disable-auto-complete-config", () -> withCompletion = false)
                .help("Uses model configurations as they are, without completing them from the models' files.");
        flags.add("--strict-model-config", FlagValue.TRUTH, v -> strictConfig = v)
                .help("Deprecated: true is --disable-auto-complete-config, false the default.")
                .notice("has been deprecated! Please use '--disable-auto-complete-config' instead.");
        flags.add("--model-config-name", FlagValue.text("NAME"), v -> modelConfigName = v)
                .help("Uses configs/NAME.pbtxt of a model's directory in place of config.pbtxt where it exists.");
        flags.add("--model-load-thread-count", FlagValue.COUNT, loadThreads, v -> loadThreads = v)
                .help("How many models are loaded at once.");
        flags.add("--backend-directory", FlagValue.DIRECTORY, backendDirectories::add)
                .help("A directory of plugins besides the server's own. May be given several times.");
        flags.add("--backend-config", FlagValue.BACKEND_SETTING, backendSettings::add)
                .help("A setting for one backend, or for all. May be given several times.");
        cache.declare(flags);
        host.declare(flags);
        pluginCache.declare(flags);
        rateLimit.declare(flags);
        storage.declare(flags);
    }

    /** Returns whether a model repository is a URL; other texts are directories. */
    public static boolean isUrl(String repository) {
        return StorageFlags.isUrl(repository);
    }

    /** Adds a model repository: a directory or a URL. */
    public void addRepository(String repository) {
        if (StorageFlags.isUrl(repository)) {
            storage.add(repository);
        } else {
            repositories.add(Path.of(repository));
        }
    }

    /**
     * Starts the server; its models continue to load.
     *
     * @param context the services of the process
     * @return the server, owned by the caller
     * @throws StartException if a directory is missing or cannot be read
     */
    public NereidServer start(CommandContext context) throws StartException {
        if (repositories.isEmpty() && storage.isEmpty()) {
            throw new StartException("--model-repository: missing (expected: --model-repository=DIR)");
        }
        if (exitOnError) { // otherwise the server runs, and is not live and not ready
            requireDirectories("--model-repository", repositories);
        }
        ServerOptions options = options(context);
        GpuAccess gpus = openGpus();
        boolean started = false;
        try {
            NereidServer server = NereidServer.startLoading(withGpus(options, gpus));
            started = true;
            return server;
        } catch (IllegalArgumentException | InferenceException e) {
            throw new StartException(String.valueOf(e.getMessage()), e);
        } finally {
            if (!started) {
                gpus.close();
            }
        }
    }

    /** Finds the GPUs and takes their memory. Owned by the caller, or by a server with options that have them. */
    public GpuAccess openGpus() {
        return gpu.open();
    }

    /** Returns options of a server with GPUs, which the server closes. */
    public static ServerOptions withGpus(ServerOptions options, GpuAccess gpus) {
        int[] numbers = gpus.numbers().stream().mapToInt(Integer::intValue).toArray();
        return options.withMemory(memory -> memory.withGpus(gpus))
                .withModels(models -> models.withInstances(instances -> instances.withGpus(numbers)));
    }

    /**
     * Returns the options of a server.
     *
     * @param context the services of the process
     * @throws StartException if a directory is missing or cannot be read
     */
    public ServerOptions options(CommandContext context) throws StartException {
        requireDirectories("--backend-directory", backendDirectories);
        Path home = context.paths().home();
        Map<String, String> environment = context.environment();
        Optional<CacheOptions> responses = cache.options(home.resolve("caches"), environment);
        Path unpacked = pluginCache.directory(context);
        InstanceOptions instances =
                host.instances(context.host().processors(), environment).withGpuLimits(gpu.loadLimits());
        DelayOptions delayed = DelayVariables.read(environment);
        SchedulingOptions limits = admission.apply(SchedulingOptions.DEFAULT, memory.bound());
        try {
            return new ServerOptions(
                            new ServerDirectories(
                                    repositories,
                                    pluginDirectories(home.resolve("plugins")),
                                    unpacked,
                                    storage.options(context, unpacked),
                                    control.hasNamespaces()),
                            admission.apply(ModelLoadOptions.DEFAULT
                                    .withAutoComplete(withCompletion && !strictConfig)
                                    .withConfigName(modelConfigName)
                                    .withLoadThreads(loadThreads)
                                    .withInstances(_ -> instances)),
                            backendSettings(),
                            memory.options().withClientSharedMemory(clientSharedMemory),
                            new SchedulingOptions(limits.limits(), rateLimit.options(), responses, delayed),
                            new LifecycleOptions(
                                    exitOnError,
                                    strictReadiness,
                                    exitTimeout,
                                    supervision.options(context.outOfMemoryExit()),
                                    control.options()),
                            new ProtocolOptions(id, errors.clientErrorsAsBadRequest()))
                    .withEnvironment(environment);
        } catch (IllegalArgumentException e) {
            throw new StartException(String.valueOf(e.getMessage()), e);
        }
    }

    private Map<String, Map<String, String>> backendSettings() {
        Map<String, Map<String, String>> settings = new HashMap<>();
        for (BackendSetting setting : backendSettings) {
            settings.computeIfAbsent(setting.backend(), backend -> new HashMap<>())
                    .put(setting.key(), setting.value());
        }
        return settings;
    }

    /** Returns the memory limits of the server. */
    public MemoryReport memoryReport() {
        TensorMemoryBound bound = memory.bound();
        return new MemoryReport(Runtime.getRuntime().maxMemory(), bound, admission.inFlightBytes(bound));
    }

    /** Adds a plugin directory behind the directories of the flags. */
    public void addBackendDirectory(Path directory) {
        backendDirectories.add(directory);
    }

    /** Returns how long requests in progress may take when the server stops. */
    public Duration exitTimeout() {
        return exitTimeout;
    }

    /**
     * Returns the plugin directories, beginning with the directories of the flags. Of two plugins with a backend of one
     * name, the first is used.
     */
    private List<Path> pluginDirectories(Path own) {
        List<Path> directories = new ArrayList<>(backendDirectories);
        if (Files.isDirectory(own)) {
            directories.add(own);
        }
        return directories;
    }

    private static void requireDirectories(String flag, List<Path> directories) throws StartException {
        for (Path directory : directories) {
            if (!Files.isDirectory(directory)) {
                throw new StartException(flag + ": " + directory + " (expected: an existing directory)");
            }
        }
    }
}
