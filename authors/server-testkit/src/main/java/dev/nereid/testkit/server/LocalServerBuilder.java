package dev.nereid.testkit.server;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.InferenceException;
import dev.nereid.server.NereidServer;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.spi.BackendProvider;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import java.util.regex.Pattern;

/** The models and options of a {@link LocalServer} before its start. Confined to the test's thread; used once. */
public final class LocalServerBuilder {
    private static final Duration TIMEOUT = Duration.ofSeconds(20);
    private static final Pattern BACKEND = Pattern.compile("(?m)(^|\\s)(backend|platform)\\s*:");

    /** Writes one model into the repository. */
    private interface ModelWriter {
        void write(TemporaryRepository repository);
    }

    private final List<BackendProvider> providers;
    private final List<ModelWriter> models = new ArrayList<>();
    private boolean strictOutputs = true;
    private Consumer<ServerOptions.Builder> change = _ -> {};
    private Duration timeout = TIMEOUT;

    LocalServerBuilder(List<BackendProvider> providers) {
        this.providers = providers;
    }

    /** Adds a model without a configuration, which its backend completes. */
    public LocalServerBuilder model(String name) {
        return model(name, "");
    }

    /**
     * Adds a model without files.
     *
     * @param config the text of {@code config.pbtxt}; where it names no backend and no platform, it is the only one of
     *     this server
     */
    public LocalServerBuilder model(String name, String config) {
        String complete = complete(config);
        models.add(repository -> repository.write(name, complete));
        return this;
    }

    /**
     * Adds a model from a directory, as it is in a repository. The directory is copied.
     *
     * @param directory the directory with the name of the model, its configuration and its versions
     */
    public LocalServerBuilder model(Path directory) {
        models.add(repository -> repository.copy(directory));
        return this;
    }

    /**
     * Adds a file to a model.
     *
     * @param model the name of the model, which was added before
     * @param path the path of the file in the directory of the model, such as {@code 1/model.onnx}
     * @param content the file that is copied
     */
    public LocalServerBuilder file(String model, String path, Path content) {
        models.add(repository -> repository.copy(model, path, content));
        return this;
    }

    /** Changes options of the server, such as settings of backends or limits of memory. */
    public LocalServerBuilder options(Consumer<ServerOptions.Builder> changed) {
        change = change.andThen(changed);
        return this;
    }

    /**
     * Replaces the limit on the time of a request, and on that of the close.
     *
     * @param limit the limit; 20 seconds by default
     */
    public LocalServerBuilder timeout(Duration limit) {
        timeout = requireNonNull(limit, "limit");
        return this;
    }

    /**
     * Accepts outputs that are missing, do not fit the configuration or are unknown to it, as a server does.
     * Without it they fail their request; a response of a decoupled model may lack outputs anyway.
     */
    public LocalServerBuilder withWrongOutputs() {
        strictOutputs = false;
        return this;
    }

    /**
     * Starts the server and waits until all models are loaded.
     *
     * @return the server, owned by the caller
     * @throws InferenceException if a model cannot be loaded, with all reasons; everything was closed again
     */
    public LocalServer start() {
        TemporaryRepository files = TemporaryRepository.create();
        boolean started = false;
        try {
            models.forEach(model -> model.write(files));
            LocalServer server = new LocalServer(NereidServer.start(options(files)), files, timeout);
            started = true;
            return server;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new AssertionError("interrupted", e);
        } finally {
            if (!started) {
                files.close();
            }
        }
    }

    private ServerOptions options(TemporaryRepository files) {
        ServerOptions.Builder options = new ServerOptions.Builder();
        options.modelRepositories.add(files.models());
        options.providers = providers;
        options.pluginCache = files.cache();
        options.poisonFreed = true;
        options.exitTimeout = timeout;
        options.strictOutputs = strictOutputs;
        change.accept(options);
        return options.build();
    }

    private String complete(String config) {
        boolean isNamed = BACKEND.matcher(config).find();
        return isNamed || providers.size() != 1
                ? config
                : "backend: \"" + providers.getFirst().name() + "\"\n" + config;
    }
}
