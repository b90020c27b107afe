package dev.nereid.distribution;

import dev.nereid.api.InferenceException;
import dev.nereid.distribution.FlagValue.BackendSetting;
import dev.nereid.server.NereidServer;
import dev.nereid.server.NereidServerBuilder;
import dev.nereid.server.cache.CacheOptions;
import dev.nereid.server.memory.TensorMemoryBound;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** The flags of the server itself: models, backends, life. Written by the command line reader, then only read. */
final class ServerFlags {
    /** The model repositories, in the order given. */
    final List<Path> repositories = new ArrayList<>();

    /** Whether the server ends if a model fails to load at the start. */
    boolean exitOnError = true;

    private final List<Path> backendDirectories = new ArrayList<>();
    private final List<BackendSetting> backendSettings = new ArrayList<>();
    private final CacheFlags cache = new CacheFlags();
    private final HostFlags host = new HostFlags();
    private final LoadFlags load = new LoadFlags();
    private final MemoryFlags memory = new MemoryFlags();
    private final PluginCacheFlags pluginCache = new PluginCacheFlags();
    private final RateFlags rate = new RateFlags();
    private final ErrorFlags errors = new ErrorFlags();
    private final SupervisionFlags supervision = new SupervisionFlags();
    private String id = "nereid";
    private boolean strictReadiness = true;
    private boolean withCompletion = true;
    private boolean clientSharedMemory;
    private String modelConfigName = "";
    private int loadThreads = 4;
    private Duration exitTimeout = Duration.ofSeconds(30);

    /** Adds the flags that set these fields. */
    void declare(Flags flags) {
        declareModels(flags);
        cache.declare(flags);
        host.declare(flags);
        load.declare(flags);
        memory.declare(flags);
        pluginCache.declare(flags);
        rate.declare(flags);
        errors.declare(flags);
        supervision.declare(flags);
        flags.add(
                Flag.of(
                        "--backend-directory",
                        FlagValue.FOLDER,
                        "A folder of plugins besides the server's own. May be given several times.",
                        backendDirectories::add),
                Flag.of(
                        "--backend-config",
                        FlagValue.BACKEND_SETTING,
                        "A setting for one backend, or for all. May be given several times.",
                        backendSettings::add),
                Flag.of(
                        "--id",
                        FlagValue.text("NAME"),
                        "The name that the server tells its clients. Default: nereid.",
                        value -> id = value),
                Flag.of(
                        "--strict-readiness",
                        FlagValue.TRUTH,
                        "Whether the server counts as ready only while all its models are. Default: true.",
                        value -> strictReadiness = value),
                Flag.of(
                        "--allow-client-shm",
                        FlagValue.TRUTH,
                        "Whether clients may share memory with the server. Default: false.",
                        value -> clientSharedMemory = value),
                Flag.of(
                        "--exit-timeout-secs",
                        FlagValue.SECONDS,
                        "How long requests may take to end when the server stops. Default: 30.",
                        value -> exitTimeout = value));
    }

    private void declareModels(Flags flags) {
        flags.add(
                Flag.of(
                                "--model-repository",
                                FlagValue.FOLDER,
                                "A model repository: a folder with a folder for each model. May be given several times.",
                                repositories::add)
                        .or("--model-store"),
                Flag.of(
                        "--exit-on-error",
                        FlagValue.TRUTH,
                        "Whether the server ends if a model fails to load at the start. Default: true.",
                        value -> exitOnError = value),
                Flag.of(
                        "--model-control-mode",
                        FlagValue.CONTROL_MODE,
                        "When models are loaded. none: all of them at the start. Default: none.",
                        value -> {}),
                Flag.toggle(
                        "--disable-auto-complete-config",
                        "Takes model configurations as they are, without completing them from the models' files.",
                        () -> withCompletion = false),
                Flag.of(
                        "--model-config-name",
                        FlagValue.text("NAME"),
                        "Takes configs/NAME.pbtxt of a model's folder in place of config.pbtxt where it exists.",
                        value -> modelConfigName = value),
                Flag.of(
                        "--model-load-thread-count",
                        FlagValue.COUNT,
                        "How many models are loaded at once. Default: 4.",
                        value -> loadThreads = value));
    }

    /**
     * Starts the server that the flags describe; its models go on loading.
     *
     * @param surroundings the process
     * @return the server, owned by the caller
     * @throws StartFailure if a folder is missing or cannot be read
     */
    NereidServer start(Surroundings surroundings) throws StartFailure {
        if (repositories.isEmpty()) {
            throw new StartFailure("--model-repository: missing (expected: --model-repository=DIR)");
        }
        requireFolders("--model-repository", repositories);
        requireFolders("--backend-directory", backendDirectories);
        Optional<CacheOptions> responses =
                cache.options(surroundings.paths().home().resolve("caches"));
        NereidServerBuilder builder = NereidServer.builder()
                .modelRepositories(repositories.toArray(Path[]::new))
                .pluginDirectories(pluginDirectories(surroundings.paths().home().resolve("plugins")))
                .cacheDirectory(pluginCache.directory(surroundings))
                .serverId(id)
                .exitOnError(exitOnError)
                .strictReadiness(strictReadiness)
                .autoComplete(withCompletion)
                .allowClientSharedMemory(clientSharedMemory)
                .modelConfigName(modelConfigName)
                .processors(surroundings.host().processors())
                .modelLoadThreads(loadThreads)
                .exitTimeout(exitTimeout);
        backendSettings.forEach(setting -> builder.backendConfig(setting.backend(), setting.key(), setting.value()));
        responses.ifPresent(builder::cache);
        host.set(builder, surroundings.environment());
        SchedulerDelay.apply(builder, surroundings.environment());
        memory.apply(builder);
        load.apply(builder, memory.bound());
        errors.apply(builder);
        rate.options().ifPresent(builder::rateLimit);
        supervision.apply(builder, surroundings.fatalExit());
        try {
            return builder.startLoading();
        } catch (IllegalArgumentException | InferenceException e) {
            throw new StartFailure(String.valueOf(e.getMessage()), e);
        }
    }

    /** Returns what there is to say of the memory of the server. */
    MemoryReport memoryReport() {
        TensorMemoryBound bound = memory.bound();
        return new MemoryReport(Runtime.getRuntime().maxMemory(), bound, load.inFlightBytes(bound));
    }

    /** Returns how long requests may take to end when the server stops. */
    Duration exitTimeout() {
        return exitTimeout;
    }

    /** The folders given come first: where two plugins bring a backend of one name, the user's wins. */
    private Path[] pluginDirectories(Path own) {
        List<Path> folders = new ArrayList<>(backendDirectories);
        if (Files.isDirectory(own)) {
            folders.add(own);
        }
        return folders.toArray(Path[]::new);
    }

    private static void requireFolders(String flag, List<Path> folders) throws StartFailure {
        for (Path folder : folders) {
            if (!Files.isDirectory(folder)) {
                throw new StartFailure(flag + ": " + folder + " (expected: an existing folder)");
            }
        }
    }
}
