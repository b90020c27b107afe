package dev.nereid.distribution.parity;

import dev.nereid.api.ModelRef;
import dev.nereid.api.statistics.ModelStatistics;
import dev.nereid.distribution.testing.CountingServer;
import dev.nereid.distribution.testing.Eventually;
import dev.nereid.distribution.testing.InstalledServer;
import dev.nereid.distribution.testing.ScriptedModels;
import dev.nereid.distribution.testing.TestServer;
import dev.nereid.plugin.cache.CacheOptions;
import dev.nereid.server.NereidServer;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/**
 * A server of the ensembles of {@link EnsembleScenarios}, and requests to it at the same time. It has a response cache and
 * shared memory, and loads models on request. Confined to the test's thread, except the requests.
 */
final class EnsembleServer implements AutoCloseable {
    static final long SECONDS = 60;
    private static final long CACHE_BYTES = 1 << 20;

    private final ScriptedModels models;
    private final NereidServer nereid;
    private final CountingServer counting;
    private final TestServer server;

    EnsembleServer(Path directory) throws IOException, InterruptedException {
        models = EnsembleScenarios.models(directory);
        nereid = NereidServer.start(
                TestServer.of(models.repository()).withPlugins(models.plugins()).with(o -> {
                    o.clientSharedMemory = true;
                    o.cache = Optional.of(CacheOptions.local(CACHE_BYTES));
                    o.explicit("*");
                }));
        counting = new CountingServer(nereid);
        server = TestServer.open(nereid, port -> counting);
    }

    ScriptedModels models() {
        return models;
    }

    TestServer server() {
        return server;
    }

    /** Connects over a protocol; the client belongs to the caller. */
    ScenarioClient connect(Protocol protocol) throws IOException {
        return switch (protocol) {
            case HTTP_JSON -> new HttpScenarios(server.http(), false);
            case HTTP_BINARY -> new HttpScenarios(server.http(), true);
            case GRPC -> new GrpcScenarios(server.grpc(), false);
            case GRPC_STREAM -> new GrpcScenarios(server.grpc(), true);
            case EMBEDDED -> new EmbeddedScenarios(nereid);
        };
    }

    /** Sends a request on a connection of its own, and waits for the outcome. */
    Outcome run(Protocol protocol, Scenario scenario) throws IOException, InterruptedException {
        ScenarioClient client = connect(protocol);
        try {
            return client.run(scenario);
        } finally {
            client.end();
        }
    }

    /** Sends a request on a connection of its own. */
    CompletableFuture<Outcome> begin(Protocol protocol, Scenario scenario) {
        CompletableFuture<Outcome> outcome = new CompletableFuture<>();
        InstalledServer.BLOCKING.execute(() -> {
            try {
                outcome.complete(run(protocol, scenario));
            } catch (Throwable e) { // the test fails with it
                outcome.completeExceptionally(e);
            }
        });
        return outcome;
    }

    /** Waits for the outcome of a request. */
    static Outcome end(CompletableFuture<Outcome> outcome) throws Exception {
        return outcome.get(SECONDS, TimeUnit.SECONDS);
    }

    /** Returns the statistics of a model. */
    ModelStatistics statistics(String model) {
        return nereid.models().statistics(ModelRef.latest(model)).getFirst();
    }

    /** Returns the number of requests that a model has executed. */
    long executed(String model) {
        return statistics(model).executions().inferenceCount();
    }

    /** Waits until every request has completed, and no memory is in use. */
    void awaitCompletion() {
        counting.awaitCompletion();
        Eventually.holds("no memory in use", SECONDS, () -> nereid.memory().bytesInUse() == 0);
    }

    @Override
    public void close() {
        awaitCompletion();
        server.close();
    }
}
