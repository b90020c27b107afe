package dev.nereid.server;

import dev.nereid.api.InferenceException;
import dev.nereid.api.Refusals;
import dev.nereid.api.ServerMetadata;
import dev.nereid.repository.ModelRepository;
import dev.nereid.scheduler.SchedulerDelay;
import dev.nereid.scheduler.SchedulerEnvironment;
import dev.nereid.scheduler.Supervision;
import dev.nereid.scheduler.admission.AdmissionCounts;
import dev.nereid.scheduler.admission.AdmissionLimits;
import dev.nereid.scheduler.rate.ExecutionLimiter;
import dev.nereid.scheduler.rate.RateLimiter;
import dev.nereid.scheduler.time.TimerThread;
import dev.nereid.scheduler.time.Watchdog;
import dev.nereid.server.control.ModelLifecycle;
import dev.nereid.server.health.Health;
import dev.nereid.server.health.ThreadWatch;
import dev.nereid.server.memory.IdleMemory;
import dev.nereid.server.memory.TensorMemoryBound;
import dev.nereid.server.memory.TensorPool;
import dev.nereid.server.options.DelayOptions;
import dev.nereid.server.options.MemoryOptions;
import dev.nereid.server.options.SchedulingOptions;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.server.options.SupervisionOptions;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Creates a server from its options: plugins, memory, timer, watchdog and model lifecycle. Immutable. */
final class ServerFactory {
    /** The protocol extensions of the server, in the order of the reference server. */
    private static final List<String> EXTENSIONS = List.of(
            "classification",
            "sequence",
            "model_repository",
            "model_repository(unload_dependents)",
            "schedule_policy",
            "model_configuration",
            "system_shared_memory",
            "cuda_shared_memory",
            "binary_tensor_data",
            "parameters",
            "statistics",
            "trace",
            "logging");

    private static final Logger LOG = LoggerFactory.getLogger(ServerFactory.class);

    private final ServerOptions options;

    ServerFactory(ServerOptions options) {
        this.options = options;
    }

    /**
     * Starts a server, which continues to load its models.
     *
     * @throws InferenceException if a repository cannot be read; all but the memory was closed again
     * @throws IllegalArgumentException if a repository does not exist, and the server is to exit on errors
     */
    NereidServer start() {
        LibraryVersions.check();
        List<Path> missing = options.directories().missingModelRepositories();
        if (options.lifecycle().exitOnError()) {
            options.directories().requireModelRepositories();
        }
        TensorMemoryBound bound = options.memory().limit().orElseGet(TensorMemoryBound::ofProcess);
        ServerMemory memory = memory(bound.bytes());
        Refusals refusals = Refusals.counting(options.protocol().clientErrorsAsBadRequest());
        BuildInfo build = BuildInfo.read();
        SupervisionOptions supervision = options.lifecycle().supervision();
        ServerPlugins plugins = ServerPlugins.open(options, build);
        Health health = new Health(supervision, options.memory().gpus());
        TimerThread timer = new TimerThread(System::nanoTime, health);
        Watchdog watchdog = new Watchdog(timer, System::nanoTime, health);
        boolean started = false;
        try {
            ModelLifecycle lifecycle = new ModelLifecycle(
                    new ModelRepository(
                            options.directories().modelRepositories(),
                            plugins.repositories().roots(),
                            options.directories().hasNamespaces()),
                    plugins.backends(),
                    plugins.files(),
                    options.models(),
                    options.lifecycle().control(),
                    new SchedulerEnvironment(memory.pool(), System::nanoTime, timer)
                            .with(plugins.cache().map(ServerCache::access))
                            .with(new AdmissionCounts(load(bound)))
                            .with(rateLimiter())
                            .withSchedulerDelay(delay())
                            .with(refusals)
                            .with(new Supervision(
                                    health,
                                    Optional.of(watchdog),
                                    supervision.executionLimit(),
                                    supervision.loadLimit(),
                                    outputCheckInterval(supervision),
                                    supervision.pluginLimits().strictOutputs())),
                    options.directories().cacheRoot());
            NereidServer server = new NereidServer(
                    new ServerMetadata(options.protocol().serverId(), build.version(), EXTENSIONS),
                    new ServerComponents(memory, plugins, lifecycle, timer, watchdog, health),
                    options.lifecycle(),
                    refusals,
                    missing);
            if (missing.isEmpty()) {
                lifecycle.start();
            } else {
                missing.forEach(repository ->
                        LOG.atError().addKeyValue("repository", repository).log(NereidServer.NO_REPOSITORY));
                lifecycle.models().end(); // no model is found, since the server is not ready
            }
            watchdog.add(health.heap());
            watchdog.add(new ThreadWatch(supervision.pluginLimits().threads()));
            options.memory()
                    .returnAfter()
                    .map(idle -> IdleMemory.ofTheProcess(idle, lifecycle::lastUse, memory.pool()))
                    .ifPresent(watchdog::add);
            started = true;
            return server;
        } finally {
            if (!started) {
                timer.close();
                plugins.close();
            }
        }
    }

    /** Returns which responses are checked: all while freed memory is overwritten, which finds other mistakes. */
    private int outputCheckInterval(SupervisionOptions supervision) {
        return options.memory().poisonFreed() ? 1 : supervision.pluginLimits().outputCheckInterval();
    }

    private ServerMemory memory(long limit) {
        MemoryOptions memory = options.memory();
        long idle = memory.idleBytes().orElse(TensorPool.idleLimit(limit));
        return ServerMemory.of(
                new TensorPool(limit, idle, memory.poisonFreed(), memory.gpus()),
                memory.gpus(),
                memory.clientSharedMemory());
    }

    private AdmissionLimits load(TensorMemoryBound bound) {
        return options.scheduling()
                .limits()
                .orElse(new AdmissionLimits(SchedulingOptions.defaultMaxRequests(), bound.inFlightBytes()));
    }

    private ExecutionLimiter rateLimiter() {
        return options.scheduling()
                .rateLimit()
                .<ExecutionLimiter>map(limits -> new RateLimiter(limits.resources().stream()
                        .map(resource ->
                                new RateLimiter.ResourceLimit(resource.name(), resource.count(), resource.device()))
                        .toList()))
                .orElse(ExecutionLimiter.OFF);
    }

    private SchedulerDelay delay() {
        DelayOptions delay = options.scheduling().delay();
        return new SchedulerDelay(delay.requests(), delay.backlogged());
    }
}
