package dev.nereid.distribution.flags;

import dev.nereid.api.InferenceException;
import dev.nereid.api.memory.GpuAccess;
import dev.nereid.distribution.process.CommandContext;
import dev.nereid.distribution.process.ExitStatus;
import dev.nereid.distribution.process.StartException;
import dev.nereid.distribution.report.MemoryReport;
import dev.nereid.repository.storage.StorageLimits;
import dev.nereid.repository.storage.StorageOptions;
import dev.nereid.server.NereidServer;
import dev.nereid.server.memory.TensorMemoryBound;
import dev.nereid.server.options.ServerOptions;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;

/** Server flags: models, backends, readiness and shutdown. Written by the command line reader, then only read. */
public final class ServerFlags {
    private static final Duration IDLE_MEMORY = Duration.ofSeconds(30);

    /** The options that the flags set, completed by {@link #options(CommandContext)}. */
    public final ServerOptions.Builder options = new ServerOptions.Builder();

    private final List<String> urls = new ArrayList<>();
    private final List<Path> storageDirectories = new ArrayList<>();
    private final ModelControlFlags control = new ModelControlFlags(options);
    private final CacheFlags cache = new CacheFlags();
    private final GpuFlags gpu = new GpuFlags();
    private final HostFlags host = new HostFlags();
    private final AdmissionFlags admission = new AdmissionFlags();
    private final PluginCacheFlags pluginCache = new PluginCacheFlags();
    private final RateLimitFlags rateLimit = new RateLimitFlags();
    private boolean strictConfig;
    private boolean exitOnOutOfMemory = true;

    public void declare(Flags flags) {
        options.returnAfter = Optional.of(IDLE_MEMORY);
        flags.add("--model-repository", FlagValue.REPOSITORY, this::addRepository)
                .help("A model repository: a directory with a directory for each model, or the URL of a remote one,"
                        + " as in s3://bucket/models. May be given several times.")
                .or("--model-store");
        flags.add("--exit-on-error", FlagValue.TRUTH, options.exitOnError, v -> options.exitOnError = v)
                .help("Whether the server exits if a model fails to load at the start.");
        control.declare(flags);
        declareLoading(flags);
        admission.declare(flags);
        flags.add(
                        "--tensor-memory-pool-byte-size",
                        FlagValue.BODY_BYTES,
                        v -> options.tensorMemoryBytes = OptionalLong.of(v))
                .help("How much memory inputs and outputs may take at a time, those of requests that are arriving"
                        + " included. Requests beyond that are refused with 503 or UNAVAILABLE and a retry time."
                        + " Default: half of the memory that the machine or the container has beside the heap, at"
                        + " least 67108864.");
        flags.add(
                        "--idle-memory-secs",
                        FlagValue.SECONDS,
                        IDLE_MEMORY,
                        v -> options.returnAfter = Optional.of(v).filter(Duration::isPositive))
                .help("After how long without requests and loads the process returns the memory that it does not use"
                        + " to the operating system. It collects the heap then, unless more than 256 MiB of it are old."
                        + " 0: never.");
        flags.add("--poison-freed-memory", FlagValue.TRUTH, options.poisonFreed, v -> options.poisonFreed = v)
                .help("Whether tensor memory is overwritten when it is released, so that backends that use it"
                        + " afterwards are detected. For debugging.");
        gpu.declare(flags);
        flags.add(
                        "--client-errors-as-bad-request",
                        FlagValue.TRUTH,
                        options.clientErrorsAsBadRequest,
                        v -> options.clientErrorsAsBadRequest = v)
                .help("Whether client errors that the reference server reports as 500 and INTERNAL, such as broken"
                        + " JSON, are reported as 400 and INVALID_ARGUMENT.");
        declareSupervision(flags);
        flags.add("--id", FlagValue.text("NAME"), options.serverId, v -> options.serverId = v)
                .help("The server name in its metadata.");
        flags.add("--strict-readiness", FlagValue.TRUTH, options.strictReadiness, v -> options.strictReadiness = v)
                .help("Whether the server is ready only while all its models are; otherwise it is when the loads of"
                        + " the start have ended, also if one failed.");
        flags.add(
                        "--allow-client-shm",
                        FlagValue.TRUTH,
                        options.clientSharedMemory,
                        v -> options.clientSharedMemory = v)
                .help("Whether clients may share memory with the server.");
        flags.add("--exit-timeout-secs", FlagValue.SECONDS, options.exitTimeout, v -> options.exitTimeout = v)
                .help("How long requests in progress may take when the server stops.");
    }

    private void declareSupervision(Flags flags) {
        flags.add("--exit-on-out-of-memory", FlagValue.TRUTH, exitOnOutOfMemory, v -> exitOnOutOfMemory = v)
                .help("Whether the process ends with exit code " + ExitStatus.OUT_OF_MEMORY + " when its heap,"
                        + " metaspace or threads are exhausted, for a supervisor to start it again; otherwise it is"
                        + " not live, refuses requests, and ends when it is stopped.");
        flags.add(
                        "--execution-watchdog-secs",
                        FlagValue.SECONDS,
                        options.executionLimit,
                        v -> options.executionLimit = v)
                .help("After how long an execution is reported as overdue in the log and in metrics; a model with"
                        + " only overdue instances is not ready. Set for a model by its parameter"
                        + " execution_watchdog_secs. 0: never.");
        flags.add("--load-watchdog-secs", FlagValue.SECONDS, options.loadLimit, v -> options.loadLimit = v)
                .help("After how long the load or close of a model version, or an execution of its warm-up, is"
                        + " reported in the log, in metrics and in the repository index. 0: never.");
        flags.add("--plugin-thread-limit", FlagValue.NUMBER, options.pluginThreads, v -> options.pluginThreads = v)
                .help("The number of threads of one plugin from which on its models are not ready, until it has ended"
                        + " enough of them. 0: any number.");
        flags.add(
                        "--output-check-interval",
                        FlagValue.NUMBER,
                        options.outputCheckInterval,
                        v -> options.outputCheckInterval = v)
                .help("One response in this many is checked for outputs that a backend changes after it passed them"
                        + " to the server; then its model is not ready. 0: none; 1: all, as with"
                        + " --poison-freed-memory.");
    }

    /** Adds the flags on which the load of a model depends: configurations, plugins and features. */
    public void declareLoading(Flags flags) {
        flags.toggle("--disable-auto-complete-config", () -> options.autoComplete = false)
                .help("Uses model configurations as they are, without completing them from the models' files.");
        flags.add("--strict-model-config", FlagValue.TRUTH, v -> strictConfig = v)
                .help("Deprecated: true is --disable-auto-complete-config, false the default.")
                .notice("has been deprecated! Please use '--disable-auto-complete-config' instead.");
        flags.add("--model-config-name", FlagValue.text("NAME"), v -> options.configName = v)
                .help("Uses configs/NAME.pbtxt of a model's directory in place of config.pbtxt where it exists.");
        flags.add("--model-load-thread-count", FlagValue.COUNT, options.loadThreads, v -> options.loadThreads = v)
                .help("How many models are loaded at once.");
        flags.add("--backend-directory", FlagValue.DIRECTORY, options.plugins::add)
                .help("A directory of plugins besides the server's own. May be given several times.");
        flags.add(
                        "--backend-config",
                        FlagValue.BACKEND_SETTING,
                        setting -> options.backendSetting(setting.backend(), setting.key(), setting.value()))
                .help("A setting for one backend, or for all. May be given several times.");
        cache.declare(flags);
        host.declare(flags);
        pluginCache.declare(flags);
        rateLimit.declare(flags);
        flags.add("--storage-directory", FlagValue.DIRECTORY, storageDirectories::add)
                .help("A directory of storage plugins besides the server's own. May be given several times.");
    }

    /** Adds a model repository: a directory or a URL. */
    public void addRepository(String repository) {
        if (FlagValue.isUrl(repository)) {
            urls.add(repository);
        } else {
            options.modelRepositories.add(Path.of(repository));
        }
    }

    /** Starts the server, owned by the caller; its models go on to load. Fails if a directory cannot be read. */
    public NereidServer start(CommandContext context) throws StartException {
        if (options.modelRepositories.isEmpty() && urls.isEmpty()) {
            throw new StartException("--model-repository: missing (expected: --model-repository=DIR)");
        }
        if (options.exitOnError) { // otherwise the server runs, and is not live and not ready
            requireDirectories("--model-repository", options.modelRepositories);
        }
        ServerOptions completed = options(context);
        GpuAccess gpus = openGpus();
        boolean started = false;
        try {
            NereidServer server = NereidServer.startLoading(withGpus(completed, gpus));
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
        return options.with(changed -> {
            changed.gpuAccess = gpus;
            changed.gpus = List.copyOf(gpus.numbers());
        });
    }

    /** Returns the options of a server; fails if a directory is missing or cannot be read. */
    public ServerOptions options(CommandContext context) throws StartException {
        requireDirectories("--backend-directory", options.plugins);
        Path home = context.paths().home();
        Map<String, String> environment = context.environment();
        options.cache = cache.options(home.resolve("caches"), environment);
        options.pluginCache = pluginCache.directory(context);
        if (Files.isDirectory(home.resolve("plugins"))) { // the directories of flags have precedence
            options.plugins.add(home.resolve("plugins"));
        }
        storageDirectories.add(home.resolve("storage"));
        Path copies = options.pluginCache.resolve("repositories");
        options.remote = new StorageOptions(urls, storageDirectories, environment, copies, StorageLimits.DEFAULT);
        options.autoComplete = options.autoComplete && !strictConfig;
        options.processors = context.host().processors();
        options.parallelInstances = HostFlags.parallel(environment);
        options.hostPolicies = host.policies();
        options.gpuLimits = gpu.loadLimits();
        options.environment = environment;
        admission.set(options, memoryBound());
        options.rateLimit = rateLimit.options();
        options.delay = DelayVariables.read(environment);
        options.fatalErrors = context.outOfMemoryExit();
        context.outOfMemoryExit().enable(exitOnOutOfMemory);
        control.check();
        try {
            return options.build();
        } catch (IllegalArgumentException e) {
            throw new StartException(String.valueOf(e.getMessage()), e);
        }
    }

    public MemoryReport memoryReport() {
        TensorMemoryBound bound = memoryBound();
        return new MemoryReport(Runtime.getRuntime().maxMemory(), bound, admission.inFlightBytes(bound));
    }

    private TensorMemoryBound memoryBound() {
        return options.tensorMemoryBytes.isPresent()
                ? TensorMemoryBound.of(options.tensorMemoryBytes.getAsLong())
                : TensorMemoryBound.ofProcess();
    }

    private static void requireDirectories(String flag, List<Path> directories) throws StartException {
        for (Path directory : directories) {
            if (!Files.isDirectory(directory)) {
                throw new StartException(flag + ": " + directory + " (expected: an existing directory)");
            }
        }
    }
}
