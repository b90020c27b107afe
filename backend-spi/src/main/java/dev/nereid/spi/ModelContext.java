package dev.nereid.spi;

import java.lang.System.Logger.Level;
import java.nio.file.Path;
import java.util.Collection;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.function.Consumer;
import java.util.stream.Stream;

/**
 * One model version, as its backend sees it. Safe for use by several threads. <em>Implemented by the server.</em>
 *
 * @since 1.0
 */
public interface ModelContext {
    /**
     * Returns the model's configuration, completed and checked (during {@link Backend#complete}: as far as it is known).
     *
     * @return the configuration
     */
    ModelSettings settings();

    /**
     * Returns the parameters of the model's configuration, all of which are texts. Each read declares a name: when the
     * first instances exist, the server logs a warning for each configured name that resembles one that was read in {@link
     * Backend#complete}, {@link Backend#load} or {@link Model#newInstance} and was itself not read, since it is probably
     * misspelt. {@link Parameters#asMap} declares all names, {@link Parameters#under} all that begin alike.
     *
     * @return the parameters
     */
    Parameters parameters();

    /**
     * Returns the file that a parameter names.
     *
     * <p>It lies in the directory of the version, or else of the model. {@code $$TRITON_MODEL_DIRECTORY/} in front stands
     * for the latter. The read declares the parameter.
     *
     * @param parameter the name of a parameter
     * @return the path of an existing regular file, read only, which {@link #privateFiles} copies for backends that map it;
     *     empty if the parameter is missing
     * @throws BackendException {@link ErrorCode#INVALID_ARGUMENT} if there is no such file, or if its path is absolute or
     *     leaves these directories, by links too
     */
    default Optional<Path> file(String parameter) {
        return parameters().text(parameter).map(name -> ParameterFiles.find(this, parameter, name));
    }

    /**
     * Returns the model's directory in the repository: label files, and a directory for each version.
     *
     * @return an existing directory; read only
     */
    Path modelDirectory();

    /**
     * Returns the directory of the loaded version. It holds the model's file or files.
     *
     * @return an existing directory; read only
     */
    Path versionDirectory();

    /**
     * Returns a directory with private copies of files, for backends that map them.
     *
     * <p>The owner of a model may overwrite, truncate and remove its files at any time. A mapped file that is truncated
     * ends the process, and one that is overwritten changes a loaded model. Therefore a backend reads the files of
     * {@link #modelDirectory()} and {@link #versionDirectory()}, and maps only files in the returned directory, or
     * passes them to a library that maps them. Libraries of native code are mapped too.
     *
     * <p>The copies take space in the directory for files of plugins ({@code --plugin-cache-directory}), and are
     * removed after the close of the model; copies of {@link Backend#complete}, with its end at the earliest. Files
     * that belong to the server, such as the copies of a remote repository, are not copied: the result is
     * {@code directory}.
     *
     * @param directory the model's directory, or one below it
     * @param files the files as paths relative to {@code directory}, separated by slashes
     * @return a directory with these files at the same relative paths, the same for equal arguments; read only
     * @throws BackendException {@link ErrorCode#INVALID_ARGUMENT} if a path leaves the directory or is no regular file,
     *     {@link ErrorCode#NOT_FOUND} if there is no such file, {@link ErrorCode#UNAVAILABLE} if there is no space for the
     *     copy, or if a file changes meanwhile
     * @throws UnsupportedOperationException if the server has none
     */
    default Path privateFiles(Path directory, Collection<String> files) {
        throw new UnsupportedOperationException("privateFiles: not available from this server");
    }

    /**
     * Returns the devices on which instances of the model will be made. There is one entry for each instance, in the
     * order of their making. A backend uses it to size what instances share, such as threads. Empty during {@link
     * Backend#complete}.
     *
     * @return the devices of the instances to come
     */
    List<Device> instances();

    /**
     * Returns the log of the model. Lines of the level WARNING are also warnings of {@code nereid check}: lines of
     * {@link Backend#complete}, and with {@code --load} all until the end of the check.
     *
     * @return a logger named after backend and model
     */
    System.Logger logger();

    /**
     * Logs a text with the file and line of the program that logs it.
     *
     * <p>An example is a program of another language. File and line appear where the format of the log has them, and among its
     * data otherwise.
     *
     * @param level the level
     * @param file the name of the file
     * @param line the number of the line
     * @param text the text as it is, without format elements
     */
    default void log(Level level, String file, int line, String text) {
        logger().log(level, file + ":" + line + "] " + text);
    }

    /**
     * Runs an action with the least level that the log writes, now and after changes.
     *
     * <p>An example is a process of another language that logs by {@link #log}. The first run is part of this call. A later one
     * is a task of {@link #executor}, about a second after the change; of several changes in this time it has the last. They
     * run one at a time.
     *
     * @param action receives {@code TRACE}, {@code DEBUG}, {@code INFO}, {@code WARNING} or {@code ERROR}, or {@code OFF} if
     *     nothing is written
     * @return ends the runs, in {@link Model#close} at the latest; the server ends and logs the remaining ones then
     * @throws IllegalStateException if the model has 100 such actions
     */
    default CancelHook onLogLevel(Consumer<Level> action) {
        action.accept(Stream.of(Level.TRACE, Level.DEBUG, Level.INFO, Level.WARNING, Level.ERROR)
                .filter(logger()::isLoggable)
                .findFirst()
                .orElse(Level.OFF));
        return () -> {};
    }

    /**
     * Returns threads of the server for work of the model beside its executions.
     *
     * <p>An example is the wait for a service. Tasks run as other code of the plugin does: with its class loader as the
     * context class loader, on processors of the model's host policy. The threads are named after model and version. They
     * are started as tasks need them, up to 64, and end when they are idle; then up to 10000 tasks wait. What a task throws
     * is logged. {@link
     * java.util.concurrent.CompletableFuture#delayedExecutor(long, java.util.concurrent.TimeUnit, Executor)} runs a task
     * later.
     *
     * <p>The executor is closed after the close of the model. The server waits for the tasks that it has then, as long
     * as it does for a model that closes, and logs tasks that do not end; it never interrupts one. A load that fails waits a
     * second: end its tasks before. The executor of {@link
     * Backend#complete} goes on in the load that follows, and is closed at the end of the completion if there is none.
     *
     * @return the executor, the same at every call; throws {@link java.util.concurrent.RejectedExecutionException} if too
     *     many tasks wait, and once it is closed; by default that of {@link java.util.concurrent.CompletableFuture}
     */
    default Executor executor() {
        return new CompletableFuture<Void>().defaultExecutor();
    }

    /**
     * Waits for slow work while other models are loaded. An example is the import of a program.
     *
     * <p>For {@link Backend#complete} and {@link Backend#load}: loads hold one of {@code --model-load-thread-count}
     * permits, and none while they wait here. At most four waits for each permit release it at a time: further ones
     * keep their permit. There is no limit of time. If the server stops, it cancels the stage
     * ({@link CompletableFuture#cancel} of {@link CompletionStage#toCompletableFuture}). On a thread that loads no
     * model, this waits and does nothing else.
     *
     * @param <T> the type of the result
     * @param stage the work, on another thread such as one of {@link #executor}
     * @return the result
     * @throws BackendException thrown by the stage, as are its other unchecked exceptions;
     *     {@link ErrorCode#UNAVAILABLE} if the server stops or the thread is interrupted
     * @throws CompletionException with a checked exception of the stage
     */
    default <T> T await(CompletionStage<T> stage) {
        try {
            return stage.toCompletableFuture().join();
        } catch (CompletionException e) {
            switch (e.getCause()) {
                case RuntimeException failure -> throw failure;
                case Error failure -> throw failure;
                case null, default -> throw e;
            }
        }
    }

    /**
     * Keeps an object for the rest of the load, such as a process.
     *
     * <p>{@link Backend#complete} starts it, for instance. {@link Backend#load} and the first {@link Model#newInstance}
     * of the same load find it by {@link #take}. The server closes objects that are not taken, the last kept first,
     * when the load ends or fails, or when the completion ends that no load follows, as for a check of the repository.
     * Exceptions of the close are logged. Any thread may keep and take objects.
     *
     * @param <T> the class of the object
     * @param object the object, owned by the server from now on
     * @return the object
     * @throws IllegalStateException if the load has ended; the caller owns the object then
     * @throws UnsupportedOperationException if the server keeps nothing; the caller owns the object then
     */
    default <T extends AutoCloseable> T keep(T object) {
        throw new UnsupportedOperationException("keep: not available from this server");
    }

    /**
     * Takes over an object that {@link #keep} has received in the same load.
     *
     * @param <T> the class of the object
     * @param type the class, or a type that it has
     * @return the object, owned by the caller: of several, the one that was kept first. Empty if there is none or all are
     *     taken, as with {@code --disable-auto-complete-config}, where {@link Backend#complete} is not called, and after
     *     the load
     */
    default <T extends AutoCloseable> Optional<T> take(Class<T> type) {
        return Optional.empty();
    }

    /**
     * Declares a model that this one calls, and waits until it serves.
     *
     * <p>Called in {@link Backend#complete} or, so that it counts with {@code --disable-auto-complete-config} too, in
     * {@link Backend#load}, on the thread of that call. The server loads the model if it does not serve; other loads go
     * on meanwhile. As with the steps of an ensemble, this model is ready only while the other one is, and it is
     * unloaded before that, and loaded again with it. A model that takes the place of the other one does not reload
     * this one, which finds it by its name. A version that stays when others of this model are loaded keeps its
     * required models.
     *
     * <p>Where no load follows the completion, the call records the name and returns at once; a check of the repository
     * refuses a model that is not there.
     *
     * @param model the name of the model, as for {@link ModelClient#request}; this one too, for which the call returns at
     *     once
     * @throws BackendException {@link ErrorCode#INVALID_ARGUMENT} if models would require each other, with their names; the
     *     code of its load if the other model cannot be loaded; {@link ErrorCode#UNAVAILABLE} if it does not serve after an
     *     hour, or the server stops
     * @throws IllegalStateException if called after the load, or on another thread
     */
    default void requires(String model) {}

    /**
     * Returns the client for other models of the server.
     *
     * @return the client, the same at every call; during {@link Backend#complete}, and where there are no other models,
     *     one to which no model is ready and with which requests fail with {@link ErrorCode#UNAVAILABLE}
     */
    default ModelClient models() {
        return NoModels.INSTANCE;
    }

    /**
     * Returns the custom metrics of the model. A server that publishes them labels them with its name and version.
     *
     * @return the metrics, the same at every call; counted and not published by a server without custom metrics
     */
    @Incubating
    default Metrics metrics() {
        return Metrics.unpublished(logger());
    }

    /**
     * Returns the traces of the model's requests.
     *
     * @return the traces, the same at every call; without any span by a server that does not trace
     */
    @Incubating
    default Tracing tracing() {
        return Tracing.none();
    }
}
