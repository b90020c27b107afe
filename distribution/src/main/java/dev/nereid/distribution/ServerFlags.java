package dev.nereid.distribution;

import dev.nereid.api.InferenceException;
import dev.nereid.distribution.FlagValues.BackendSetting;
import dev.nereid.server.NereidServer;
import dev.nereid.server.NereidServerBuilder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import picocli.CommandLine.Option;

/** The flags of the server itself: models, backends, life. Written by the command line reader, then only read. */
final class ServerFlags {
    private static final int DEFAULT_EXIT_TIMEOUT = 30;
    private static final int DEFAULT_LOAD_THREADS = 4;

    @Option(
            names = {"--model-repository", "--model-store"},
            paramLabel = "DIR",
            description = "A model repository: a folder with a folder for each model. May be given several times.")
    final List<Path> repositories = new ArrayList<>();

    @Option(
            names = "--backend-directory",
            paramLabel = "DIR",
            description = "A folder of plugins besides the server's own. May be given several times.")
    final List<Path> backendDirectories = new ArrayList<>();

    @Option(
            names = "--backend-config",
            paramLabel = "[BACKEND,]KEY=VALUE",
            converter = FlagValues.BackendSettings.class,
            description = "A setting for one backend, or for all. May be given several times.")
    final List<BackendSetting> backendSettings = new ArrayList<>();

    @Option(
            names = "--id",
            paramLabel = "NAME",
            defaultValue = "nereid",
            description = "The name that the server tells its clients. Default: ${DEFAULT-VALUE}.")
    String id = "nereid";

    @Option(
            names = "--exit-on-error",
            arity = "1",
            paramLabel = "BOOL",
            defaultValue = "true",
            converter = FlagValues.Truth.class,
            description = "Whether the server ends if a model fails to load at the start. Default: ${DEFAULT-VALUE}.")
    boolean exitOnError = true;

    @Option(
            names = "--strict-readiness",
            arity = "1",
            paramLabel = "BOOL",
            defaultValue = "true",
            converter = FlagValues.Truth.class,
            description =
                    "Whether the server counts as ready only while all its models are. Default: ${DEFAULT-VALUE}.")
    boolean strictReadiness = true;

    @Option(
            names = "--disable-auto-complete-config",
            description = "Takes model configurations as they are, without completing them from the models' files.")
    boolean withoutCompletion;

    @Option(
            names = "--model-control-mode",
            paramLabel = "MODE",
            defaultValue = "none",
            converter = FlagValues.ControlMode.class,
            description = "When models are loaded. none: all of them at the start. Default: ${DEFAULT-VALUE}.")
    String controlMode = "none";

    @Option(
            names = "--model-load-thread-count",
            paramLabel = "N",
            defaultValue = "" + DEFAULT_LOAD_THREADS,
            converter = FlagValues.Count.class,
            description = "How many models are loaded at once. Default: ${DEFAULT-VALUE}.")
    int loadThreads = DEFAULT_LOAD_THREADS;

    @Option(
            names = "--exit-timeout-secs",
            paramLabel = "N",
            defaultValue = "" + DEFAULT_EXIT_TIMEOUT,
            converter = FlagValues.Seconds.class,
            description = "How long requests may take to end when the server stops. Default: ${DEFAULT-VALUE}.")
    private int exitTimeoutSeconds = DEFAULT_EXIT_TIMEOUT;

    @Option(
            names = "--model-config-name",
            paramLabel = "NAME",
            defaultValue = "",
            description = "Takes configs/NAME.pbtxt of a model's folder in place of config.pbtxt where it exists.")
    String modelConfigName = "";

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
        NereidServerBuilder builder = NereidServer.builder()
                .modelRepositories(repositories.toArray(Path[]::new))
                .pluginDirectories(pluginDirectories(surroundings.home().resolve("plugins")))
                .cacheDirectory(surroundings.cacheDirectory())
                .serverId(id)
                .exitOnError(exitOnError)
                .strictReadiness(strictReadiness)
                .autoComplete(!withoutCompletion)
                .modelConfigName(modelConfigName)
                .processors(surroundings.processors())
                .modelLoadThreads(loadThreads)
                .exitTimeout(exitTimeout());
        backendSettings.forEach(setting -> builder.backendConfig(setting.backend(), setting.key(), setting.value()));
        try {
            return builder.startLoading();
        } catch (IllegalArgumentException | InferenceException e) {
            throw new StartFailure(String.valueOf(e.getMessage()), e);
        }
    }

    /** Returns how long requests may take to end when the server stops. */
    Duration exitTimeout() {
        return Duration.ofSeconds(exitTimeoutSeconds);
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
