package dev.nereid.server;

import dev.nereid.api.InferenceException;
import dev.nereid.api.Refusals;
import dev.nereid.api.ServerMetadata;
import dev.nereid.scheduler.SchedulerEnvironment;
import dev.nereid.scheduler.Supervision;
import dev.nereid.scheduler.admission.LoadLimits;
import dev.nereid.scheduler.admission.ServerLoad;
import dev.nereid.scheduler.rate.ExecutionCountLimiter;
import dev.nereid.scheduler.rate.RateLimiter;
import dev.nereid.scheduler.rate.ResourceLimit;
import dev.nereid.scheduler.time.TimerThread;
import dev.nereid.scheduler.time.Watchdog;
import dev.nereid.server.cache.CacheOptions;
import dev.nereid.server.cache.ServerCache;
import dev.nereid.server.lifecycle.ModelLifecycle;
import dev.nereid.server.lifecycle.ModelLoadOptions;
import dev.nereid.server.plugin.BackendRegistry;
import dev.nereid.server.plugin.PluginEnvironment;
import dev.nereid.server.repository.ModelRepository;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * Creates a server from its options: plugins, memory, timer, watchdog and model lifecycle. Immutable.
 *
 * @param directories where it finds models and plugins
 * @param load how models are loaded
 * @param backendSettings the settings of backends by their names; those for all under an empty name
 * @param cache the cache of responses; empty for none
 * @param serverLoad how much may be in flight to all models together
 * @param schedulerDelay how many requests have to wait before a dynamic batcher takes its first batch
 * @param rateLimit how instances get their turns; empty to let all of them execute whenever they like
 * @param serverId what the server calls itself
 * @param strictReadiness whether it counts as ready only if every model is
 * @param supervision who is told of fatal errors, and what is reported as overdue
 * @param exitTimeout how long its end waits for calls
 */
record ServerFactory(
        ServerDirectories directories,
        ModelLoadOptions load,
        Map<String, Map<String, String>> backendSettings,
        Optional<CacheOptions> cache,
        LoadLimits serverLoad,
        int schedulerDelay,
        Optional<RateLimitOptions> rateLimit,
        String serverId,
        boolean strictReadiness,
        SupervisionOptions supervision,
        Duration exitTimeout) {
    /** What the server speaks, in the order in which the reference lists it. */
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

    /**
     * Starts a server, which goes on to load its models.
     *
     * @param memory where its tensors lie; owned by the server
     * @param refusals counts what it refuses
     * @throws InferenceException if a repository cannot be read; all but the memory was closed again
     */
    NereidServer start(ServerMemory memory, Refusals refusals) {
        BuildInfo build = BuildInfo.read();
        Optional<ServerCache> responses = cache.map(options -> ServerCache.open(options, build.spi()));
        BackendRegistry backends = BackendRegistry.open(
                directories.pluginDirectories(),
                new PluginEnvironment(
                        build.spi(),
                        backendSettings,
                        directories.cacheRoot(),
                        load.instances().processors()));
        Health health = new Health(supervision);
        TimerThread timer = new TimerThread(System::nanoTime, health);
        Watchdog watchdog = new Watchdog(timer, System::nanoTime);
        boolean started = false;
        try {
            ModelLifecycle lifecycle = new ModelLifecycle(
                    new ModelRepository(directories.modelRepositories()),
                    backends,
                    load,
                    new SchedulerEnvironment(memory.pool(), System::nanoTime, timer)
                            .with(responses.map(ServerCache::access))
                            .with(new ServerLoad(serverLoad))
                            .with(rateLimiter())
                            .withSchedulerDelay(schedulerDelay)
                            .with(new Supervision(
                                    health,
                                    Optional.of(watchdog),
                                    supervision.executionLimit(),
                                    supervision.loadLimit())));
            lifecycle.start();
            watchdog.add(health.heap());
            started = true;
            return new NereidServer(
                    new ServerMetadata(serverId, build.version(), EXTENSIONS),
                    memory,
                    responses,
                    backends,
                    lifecycle,
                    timer,
                    watchdog,
                    health,
                    strictReadiness,
                    exitTimeout,
                    refusals);
        } finally {
            if (!started) {
                timer.close();
                backends.close();
                responses.ifPresent(ServerCache::close);
            }
        }
    }

    private RateLimiter rateLimiter() {
        return rateLimit
                .<RateLimiter>map(options -> new ExecutionCountLimiter(options.resources().stream()
                        .map(resource -> new ResourceLimit(resource.name(), resource.count(), resource.device()))
                        .toList()))
                .orElse(RateLimiter.OFF);
    }
}
