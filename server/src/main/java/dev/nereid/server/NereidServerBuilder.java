package dev.nereid.server;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.InferenceException;
import dev.nereid.api.Refusals;
import dev.nereid.scheduler.admission.LoadLimits;
import dev.nereid.server.cache.CacheOptions;
import dev.nereid.server.host.HostPolicies;
import dev.nereid.server.instance.InstanceOptions;
import dev.nereid.server.lifecycle.ModelLoadOptions;
import dev.nereid.server.memory.TensorMemoryBound;
import dev.nereid.server.memory.TensorPool;
import dev.nereid.spi.ErrorCode;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;

/**
 * Collects the options of a server and starts it. Confined to one thread.
 *
 * <p>The defaults are those of the command line.
 */
public final class NereidServerBuilder {
    /** What a request takes of the heap while it is in flight, with room for other things. */
    private static final long HEAP_BYTES_PER_REQUEST = 16 << 10;

    private final Map<String, Map<String, String>> backendSettings = new HashMap<>();
    private List<Path> modelRepositories = List.of();
    private List<Path> pluginDirectories = List.of();
    private List<Integer> gpus = List.of();
    private String serverId = "nereid";
    private String modelConfigName = "";
    private boolean clientErrorsAsBadRequest;
    private boolean exitOnError = true;
    private boolean strictReadiness = true;
    private boolean autoComplete = true;
    private boolean clientSharedMemory;
    private int processors = Runtime.getRuntime().availableProcessors();
    private int modelLoadThreads = 4;
    private Optional<TensorMemoryBound> memoryBound = Optional.empty();
    private OptionalLong idleMemoryLimit = OptionalLong.empty();
    private boolean poisonFreedMemory;
    private Duration exitTimeout = Duration.ofSeconds(30);
    private Path cacheDirectory = Path.of("");
    private Optional<CacheOptions> cache = Optional.empty();
    private boolean parallelInstances;
    private HostPolicies hostPolicies = HostPolicies.NONE;
    private Optional<LoadLimits> serverLoad = Optional.empty();
    private LoadLimits modelLoad = LoadLimits.NONE;
    private Optional<RateLimitOptions> rateLimit = Optional.empty();
    private int schedulerDelay;
    private SupervisionOptions supervision = SupervisionOptions.DEFAULT;

    /**
     * Returns how many calls may be in flight at a time unless {@link #maxInFlight} says otherwise: one for each 16 KiB of
     * the largest heap that this JVM may have, and 100,000 at most.
     *
     * @return the most calls
     */
    public static long defaultMaxRequestsInFlight() {
        return Math.min(100_000, Runtime.getRuntime().maxMemory() / HEAP_BYTES_PER_REQUEST);
    }

    NereidServerBuilder() {}

    /**
     * Sets the folders that hold models. Required.
     *
     * @param folders existing folders
     * @return this builder
     */
    public NereidServerBuilder modelRepositories(Path... folders) {
        modelRepositories = List.of(folders);
        return this;
    }

    /**
     * Sets the folders that hold plugins. None by default.
     *
     * @param folders existing folders; where two plugins bring a backend of one name, the first wins
     * @return this builder
     */
    public NereidServerBuilder pluginDirectories(Path... folders) {
        pluginDirectories = List.of(folders);
        return this;
    }

    /**
     * Sets the folder in which plugins unpack native libraries and the like.
     *
     * @param folder made when a plugin needs it; {@code .cache} in the first folder of plugins by default
     * @return this builder
     */
    public NereidServerBuilder cacheDirectory(Path folder) {
        cacheDirectory = requireNonNull(folder, "folder");
        return this;
    }

    /**
     * Sets the name by which the server calls itself.
     *
     * @param id the name; {@code nereid} by default
     * @return this builder
     */
    public NereidServerBuilder serverId(String id) {
        serverId = requireNonNull(id, "id");
        return this;
    }

    /**
     * Sets whether {@link #start} fails if a model cannot be loaded.
     *
     * @param value {@code true} by default
     * @return this builder
     */
    public NereidServerBuilder exitOnError(boolean value) {
        exitOnError = value;
        return this;
    }

    /**
     * Sets whether the server counts as ready only if every model is.
     *
     * @param value {@code true} by default
     * @return this builder
     */
    public NereidServerBuilder strictReadiness(boolean value) {
        strictReadiness = value;
        return this;
    }

    /**
     * Sets whether clients may register shared memory of theirs for inputs and outputs. Who can reach the server can
     * then read and write every POSIX shared memory segment that the server's user can.
     *
     * @param value {@code false} by default
     * @return this builder
     */
    public NereidServerBuilder allowClientSharedMemory(boolean value) {
        clientSharedMemory = value;
        return this;
    }

    /**
     * Sets whether backends complete configurations from the models' files.
     *
     * @param value {@code true} by default
     * @return this builder
     */
    public NereidServerBuilder autoComplete(boolean value) {
        autoComplete = value;
        return this;
    }

    /**
     * Has models configured by {@code configs/<name>.pbtxt} where they have such a file.
     *
     * @param name the name; empty by default, for {@code config.pbtxt} alone
     * @return this builder
     */
    public NereidServerBuilder modelConfigName(String name) {
        modelConfigName = requireNonNull(name, "name");
        return this;
    }

    /**
     * Gives a setting to a backend.
     *
     * @param backend the name of the backend; empty for all
     * @param key the setting; {@code default-max-batch-size} is 4 for all backends unless set
     * @param value its value
     * @return this builder
     */
    public NereidServerBuilder backendConfig(String backend, String key, String value) {
        backendSettings.computeIfAbsent(backend, name -> new HashMap<>()).put(key, value);
        return this;
    }

    /**
     * Sets how many processors backends may use.
     *
     * @param number at least 1; those of the machine, as far as this process may use them, by default
     * @return this builder
     */
    public NereidServerBuilder processors(int number) {
        processors = number;
        return this;
    }

    /**
     * Sets the graphics processors that instances may run on.
     *
     * @param numbers their numbers; none by default
     * @return this builder
     */
    public NereidServerBuilder gpus(int... numbers) {
        gpus = Arrays.stream(numbers).boxed().toList();
        return this;
    }

    /**
     * Sets how many models are loaded at a time.
     *
     * @param number at least 1; 4 by default
     * @return this builder
     */
    public NereidServerBuilder modelLoadThreads(int number) {
        modelLoadThreads = number;
        return this;
    }

    /**
     * Sets whether the instances of a model are made at once, on as many threads as there are processors, also where
     * their backend does not say that this is safe.
     *
     * @param value {@code false} by default
     * @return this builder
     */
    public NereidServerBuilder parallelInstanceLoading(boolean value) {
        parallelInstances = value;
        return this;
    }

    /**
     * Sets how many requests have to wait for a model with dynamic batching before its first batch is taken, so that
     * tests know what the batches are. It counts once, from the load of the model on; a stop of the model ends it. For
     * tests only: a model that gets fewer requests executes none of them.
     *
     * @param requests 0 by default: models take batches as their configuration says
     * @return this builder
     */
    public NereidServerBuilder schedulerDelay(int requests) {
        if (requests < 0) {
            throw new IllegalArgumentException("schedulerDelay: " + requests + " (expected: >= 0)");
        }
        schedulerDelay = requests;
        return this;
    }

    /**
     * Sets on which processors the threads of instances run.
     *
     * @param policies by default none: threads run anywhere
     * @return this builder
     */
    public NereidServerBuilder hostPolicies(HostPolicies policies) {
        hostPolicies = requireNonNull(policies, "policies");
        return this;
    }

    /**
     * Sets how much memory tensors may take at a time, in use and idle; calls beyond that are refused.
     *
     * @param bytes at least 1; by default half of the memory that the process may have beside its heap, and at least
     *     64 MiB: the other half is for backends in native code
     * @return this builder
     * @throws IllegalArgumentException if it is less than 1
     */
    public NereidServerBuilder memoryLimit(long bytes) {
        memoryBound = Optional.of(TensorMemoryBound.of(bytes));
        return this;
    }

    /**
     * Sets how much memory is kept for tensors to come.
     *
     * @param bytes 256 MiB by default, or an eighth of the {@linkplain #memoryLimit limit} if that is less
     * @return this builder
     */
    public NereidServerBuilder idleMemoryLimit(long bytes) {
        idleMemoryLimit = OptionalLong.of(bytes);
        return this;
    }

    /**
     * Sets whether memory of tensors is overwritten when it is given back, so that a backend that uses it afterwards is
     * noticed. For debugging: it takes time.
     *
     * @param value {@code false} by default
     * @return this builder
     */
    public NereidServerBuilder poisonFreedMemory(boolean value) {
        poisonFreedMemory = value;
        return this;
    }

    /**
     * Has responses kept for later calls that are the same, of models whose configurations say {@code response_cache}.
     *
     * @param options which cache; none by default
     * @return this builder
     */
    public NereidServerBuilder cache(CacheOptions options) {
        cache = Optional.of(options);
        return this;
    }

    /**
     * Sets how much may be in flight at a time, to all models together: taken, and not yet answered with all responses
     * closed and all memory given back. A call beyond that is refused at once, and told
     * {@linkplain InferenceException#retryAfter when to try again}.
     *
     * @param requests the most calls; 0 for any number; {@link #defaultMaxRequestsInFlight} by default
     * @param bytes the most bytes of their inputs; 0 for as many as the {@linkplain #memoryLimit memory} has room for;
     *     three quarters of that by default
     * @return this builder
     */
    public NereidServerBuilder maxInFlight(long requests, long bytes) {
        serverLoad = Optional.of(new LoadLimits(requests, bytes));
        return this;
    }

    /**
     * Sets how much may be in flight at a time to each version of a model, as {@link #maxInFlight} does for all
     * together.
     *
     * @param requests the most calls; 0 for any number, which is the default
     * @param bytes the most bytes of their inputs; 0 for any number, which is the default
     * @return this builder
     */
    public NereidServerBuilder maxInFlightOfModel(long requests, long bytes) {
        modelLoad = new LoadLimits(requests, bytes);
        return this;
    }

    /**
     * Has instances execute in turns, so that never more runs at the same time than there are resources for: as
     * configurations ask for it by {@code instance_group.rate_limiter}. No instance is run by a thread that submits
     * calls then. Without this, which is the default, those settings have no effect.
     *
     * @param options how much there is of what
     * @return this builder
     */
    public NereidServerBuilder rateLimit(RateLimitOptions options) {
        rateLimit = Optional.of(options);
        return this;
    }

    /**
     * Sets who is told of fatal errors, and what is reported as overdue.
     *
     * @param options {@link SupervisionOptions#DEFAULT} by default
     * @return this builder
     */
    public NereidServerBuilder supervision(SupervisionOptions options) {
        supervision = requireNonNull(options, "options");
        return this;
    }

    /**
     * Sets how long {@link NereidServer#close} waits for calls to end.
     *
     * @param timeout 30 seconds by default
     * @return this builder
     */
    public NereidServerBuilder exitTimeout(Duration timeout) {
        exitTimeout = requireNonNull(timeout, "timeout");
        return this;
    }

    /**
     * Sets with which code mistakes of clients are told that the reference server takes for its own, such as JSON that is
     * none.
     *
     * @param value {@code true} for {@link ErrorCode#INVALID_ARGUMENT}; {@code false}, the default, for {@link
     *     ErrorCode#INTERNAL} as the reference does
     * @return this builder
     */
    public NereidServerBuilder clientErrorsAsBadRequest(boolean value) {
        clientErrorsAsBadRequest = value;
        return this;
    }

    /**
     * Starts the server and waits until every model is loaded or has failed. Blocks meanwhile.
     *
     * @return the server, owned by the caller
     * @throws IllegalArgumentException if an option is wrong or a folder is missing
     * @throws InferenceException if a repository cannot be read, or if a model cannot be loaded and the server is to
     *     exit on errors; everything was closed again
     * @throws InterruptedException if the thread is interrupted meanwhile; everything was closed again
     */
    public NereidServer start() throws InterruptedException {
        NereidServer server = startLoading();
        boolean started = false;
        try {
            server.awaitModels();
            started = true;
        } catch (InferenceException e) {
            if (exitOnError) {
                throw e;
            }
            started = true;
        } finally {
            if (!started) {
                server.close();
            }
        }
        return server;
    }

    /**
     * Starts the server and returns while its models are loading, whether the server is to exit on errors or not.
     * {@link NereidServer#awaitModels} tells the end.
     *
     * @return the server, live but with strict readiness not ready yet, owned by the caller
     * @throws IllegalArgumentException if an option is wrong or a folder is missing
     * @throws InferenceException if a repository cannot be read
     */
    public NereidServer startLoading() {
        TensorMemoryBound bound = memoryBound.orElseGet(TensorMemoryBound::ofProcess);
        long limit = bound.bytes();
        TensorPool pool = new TensorPool(limit, idleMemoryLimit.orElse(TensorPool.idleLimit(limit)), poisonFreedMemory);
        return new ServerFactory(
                        new ServerDirectories(modelRepositories, pluginDirectories, cacheDirectory),
                        new ModelLoadOptions(
                                autoComplete,
                                modelConfigName,
                                modelLoadThreads,
                                new InstanceOptions(processors, gpus, parallelInstances, hostPolicies),
                                modelLoad),
                        backendSettings,
                        cache,
                        serverLoad.orElse(new LoadLimits(defaultMaxRequestsInFlight(), bound.inFlightBytes())),
                        schedulerDelay,
                        rateLimit,
                        serverId,
                        strictReadiness,
                        supervision,
                        exitTimeout)
                .start(ServerMemory.of(pool, clientSharedMemory), Refusals.counting(clientErrorsAsBadRequest));
    }
}
