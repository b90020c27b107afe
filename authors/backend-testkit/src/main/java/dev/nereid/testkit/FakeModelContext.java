package dev.nereid.testkit;

import dev.nereid.api.parameter.ModelParameters;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.CancelHook;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Metrics;
import dev.nereid.spi.ModelClient;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelSettings;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Executor;
import java.util.function.Consumer;

/**
 * A {@link ModelContext} for tests of backends. Immutable but for its log, kept objects and the records of read
 * parameters and required models.
 *
 * @param instances the devices of the instances
 * @param client the client for other models; empty for a server that has none
 * @param parameters the parameters of the configuration, which record their reads
 * @param kept the objects that the backend keeps and has not taken; a list that changes, for use by any thread
 * @param required the names of the models that the backend requires, in the order of its calls; a list that changes
 */
public record FakeModelContext(
        ModelSettings settings,
        Path modelDirectory,
        Path versionDirectory,
        List<Device> instances,
        RecordedLog logger,
        Optional<ModelClient> client,
        ModelParameters parameters,
        List<AutoCloseable> kept,
        List<String> required)
        implements ModelContext {
    public FakeModelContext {
        instances = List.copyOf(instances);
    }

    /**
     * Creates a version of a model that knows no other models.
     *
     * @param instances the devices of the instances
     */
    public FakeModelContext(
            ModelSettings settings,
            Path modelDirectory,
            Path versionDirectory,
            List<Device> instances,
            RecordedLog logger) {
        this(
                settings,
                modelDirectory,
                versionDirectory,
                instances,
                logger,
                Optional.empty(),
                ModelParameters.of(Map.of()),
                new CopyOnWriteArrayList<>(),
                new CopyOnWriteArrayList<>());
    }

    /**
     * Creates a version of a model with one instance on the processor.
     *
     * @param modelDirectory the directory of the model, which contains that of the version
     */
    public FakeModelContext(ModelSettings settings, Path modelDirectory) {
        this(
                settings,
                modelDirectory,
                modelDirectory.resolve(Long.toString(settings.version())),
                List.of(Device.CPU),
                new RecordedLog());
    }

    /** Returns the same context with a client for other models. */
    public FakeModelContext with(ModelClient models) {
        return new FakeModelContext(
                settings,
                modelDirectory,
                versionDirectory,
                instances,
                logger,
                Optional.of(models),
                parameters,
                kept,
                required);
    }

    /**
     * Returns the same context with one more parameter, of which nothing has read any.
     *
     * @param value its text in the configuration
     */
    public FakeModelContext withParameter(String name, String value) {
        return withParameters(Map.of(name, value));
    }

    /**
     * Returns the same context with more parameters, of which nothing has read any.
     *
     * @param more the texts in the configuration by name
     * @return the changed context, for which {@link #unreadParameters} lists the names that the backend ignores
     */
    public FakeModelContext withParameters(Map<String, String> more) {
        return new FakeModelContext(
                settings,
                modelDirectory,
                versionDirectory,
                instances,
                logger,
                client,
                parameters.with(more),
                kept,
                required);
    }

    /**
     * Returns the parameters that the backend has not read, and so ignores.
     *
     * @return the names, sorted
     */
    public List<String> unreadParameters() {
        return parameters.unread();
    }

    @Override
    public <T extends AutoCloseable> T keep(T object) {
        kept.add(object);
        return object;
    }

    @Override
    public <T extends AutoCloseable> Optional<T> take(Class<T> type) {
        for (AutoCloseable object : List.copyOf(kept)) {
            if (type.isInstance(object) && kept.remove(object)) {
                return Optional.of(type.cast(object));
            }
        }
        return Optional.empty();
    }

    /**
     * Records the name of a required model, and waits for nothing.
     *
     * @param model the name
     */
    @Override
    public void requires(String model) {
        required.add(model);
    }

    /**
     * Closes the objects that were kept and not taken, as the server does at the end of a load. What they throw is
     * recorded in the log.
     */
    public void endLoad() {
        for (AutoCloseable object : List.copyOf(kept).reversed()) {
            if (kept.remove(object)) {
                close(object);
            }
        }
    }

    private void close(AutoCloseable object) {
        try {
            object.close();
        } catch (Exception | Error e) {
            logger.log(System.Logger.Level.WARNING, "close of an object that was kept failed: " + e, e);
        }
    }

    /**
     * Copies the files into a temporary directory, which is removed when the process ends.
     *
     * @param files the paths of the files below it
     */
    @Override
    public Path privateFiles(Path directory, Collection<String> files) {
        try {
            Path target = Files.createTempDirectory("nereid-private-files");
            target.toFile().deleteOnExit();
            for (String file : files) {
                Path copy = target.resolve(file);
                Files.createDirectories(copy.resolveSibling(""));
                Files.copy(directory.resolve(file), copy);
                Path made = target;
                for (Path name : target.relativize(copy)) { // directories first, since they are deleted last
                    made = made.resolve(name);
                    made.toFile().deleteOnExit();
                }
            }
            return target;
        } catch (IOException e) {
            throw new BackendException(ErrorCode.UNAVAILABLE, "private files: " + e.getMessage(), e);
        }
    }

    /**
     * Returns an executor of threads of the JVM, the default one of {@link java.util.concurrent.CompletableFuture}. It is
     * never closed and refuses no task. What a task throws is logged, as the server does.
     */
    @Override
    public Executor executor() {
        Executor threads = ModelContext.super.executor();
        return task -> threads.execute(() -> run(task));
    }

    private void run(Runnable task) {
        try {
            task.run();
        } catch (RuntimeException | Error e) {
            logger.log(System.Logger.Level.ERROR, "task of the executor failed: " + e, e);
        }
    }

    /**
     * Runs an action with the level of the log, now and in each call of {@link RecordedLog#setLevel}.
     *
     * @param action receives the level
     * @return ends the runs
     */
    @Override
    public CancelHook onLogLevel(Consumer<System.Logger.Level> action) {
        return logger.onLevel(action);
    }

    /** Returns metrics that are counted. Metrics that cannot be are recorded in the log as warnings. */
    @Override
    public Metrics metrics() {
        return logger.metrics();
    }

    @Override
    public ModelClient models() {
        return client.orElseGet(ModelContext.super::models);
    }
}
