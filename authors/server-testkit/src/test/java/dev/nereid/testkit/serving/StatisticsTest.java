package dev.nereid.testkit.serving;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.ModelRef;
import dev.nereid.api.statistics.BatchStatistics;
import dev.nereid.api.statistics.FailureReason;
import dev.nereid.api.statistics.InferenceTimings;
import dev.nereid.api.statistics.ModelStatistics;
import dev.nereid.api.statistics.ResponseStatistics;
import dev.nereid.api.statistics.Timing;
import dev.nereid.plugin.cache.CacheOptions;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ModelRequest;
import dev.nereid.spi.Shape;
import dev.nereid.testkit.server.LocalServer;
import dev.nereid.testkit.server.ReceivedResponses;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Statistics of models after a scripted workload. */
@Timeout(60)
final class StatisticsTest {
    private static final String MODEL = "gated";
    private static final String KEPT = "kept";
    private static final String STREAMED = "streamed";
    private static final String TENSORS =
            GatedBackend.tensors(8, "FP32", "[ -1 ]") + "instance_group { count: 1 kind: KIND_CPU }\n";
    private static final String LIMITS =
            "dynamic_batching { default_queue_policy { max_queue_size: 2 allow_timeout_override: true } }\n";

    private final GatedBackend backend = new GatedBackend();
    private LocalServer server;

    @BeforeEach
    void start() {
        server = LocalServer.with(backend)
                .model(MODEL, TENSORS + "dynamic_batching { }\n")
                .model(KEPT, TENSORS + "response_cache { enable: true }\n" + LIMITS)
                .model(STREAMED, TENSORS + "model_transaction_policy { decoupled: true }\n")
                .options(options -> options.cache = Optional.of(CacheOptions.local(1 << 20)))
                .start();
    }

    @AfterEach
    void stop() {
        server.close();
    }

    @Test
    void nothingIsCountedBeforeTheFirstRequest() {
        ModelStatistics statistics = statistics(MODEL);

        assertThat(statistics.executions().lastInferenceMillis()).isZero();
        assertThat(statistics.executions().batches()).isEmpty();
        assertThat(statistics.inferences().success().count()).isZero();
    }

    @Test
    void aWorkloadIsCountedAsItWas() throws InterruptedException {
        long before = System.currentTimeMillis();
        // Three executions of one item, one of four.
        for (int i = 0; i < 3; i++) {
            send(MODEL, 1).one();
        }
        send(MODEL, 4).one();

        // Not counted: an unknown model, and a request that is wrong.
        assertThatThrownBy(() -> send("nope", 1).one()).isInstanceOf(BackendException.class);
        assertThatThrownBy(() -> server.send(server.client().request(MODEL).input("INPUT0", Shape.of(1, 1), 1L))
                        .one())
                .isInstanceOf(BackendException.class);

        // Cancelled while it executes and while it waits; two that waited form an execution of three items.
        GatedBackend.Gate gate = backend.close(MODEL);
        ModelRequest executing = request(MODEL, 1);
        ReceivedResponses first = server.send(executing);
        gate.awaitExecution();
        ReceivedResponses one = send(MODEL, 1);
        ReceivedResponses two = send(MODEL, 2);
        ModelRequest leaving = request(MODEL, 5);
        ReceivedResponses left = server.send(leaving);
        assertThat(statistics(MODEL).metrics().pending()).isEqualTo(3);
        leaving.cancel();
        left.error();
        assertThat(statistics(MODEL).inferences().fail().count()).isEqualTo(1);
        executing.cancel();
        gate.open();
        one.one();
        two.one();
        first.error();
        Eventually.holds("counted", () -> statistics(MODEL).inferences().fail().count() == 2);

        // An execution that fails.
        backend.fail(true);
        send(MODEL, 2).error();
        backend.fail(false);

        Eventually.holds("counted", () -> statistics(MODEL).executions().executionCount() == 6);
        ModelStatistics statistics = consistent(MODEL);
        assertThat(statistics.executions().inferenceCount()).isEqualTo(3 + 4 + 3);
        assertThat(statistics.executions().lastInferenceMillis()).isBetween(before, System.currentTimeMillis());
        assertThat(statistics.inferences().success().count()).isEqualTo(6);
        assertThat(statistics.inferences().fail().count()).isEqualTo(3);
        assertThat(statistics.executions().batches().stream()
                        .collect(Collectors.toMap(
                                BatchStatistics::batchSize,
                                batch -> batch.compute().infer().count())))
                .isEqualTo(Map.of(1L, 4L, 3L, 1L, 4L, 1L));
        assertFailures(statistics, 0, 2, 1);
        assertThat(statistics.metrics().pending()).isZero();
    }

    /** Hits, misses, and refusals and rejections by the queue. */
    @Test
    void hitsAndLimitsAreCountedAsTheyWere() throws InterruptedException {
        for (int i = 0; i < 3; i++) {
            send(KEPT, 2).one(); // one miss, two hits
        }
        send(KEPT, 5).one(); // another miss

        // One executes, two wait, one of them with a timeout; one more exceeds the queue, and a hit needs no place.
        GatedBackend.Gate gate = backend.close(KEPT);
        ReceivedResponses executing = send(KEPT, 1);
        gate.awaitExecution();
        ReceivedResponses waiting = send(KEPT, 3);
        ReceivedResponses impatient = server.send(request(KEPT, 4).timeoutMicros(100_000));
        assertThat(statistics(KEPT).metrics().pending()).isEqualTo(2);
        assertThat(send(KEPT, 6).error()).hasMessageContaining("Exceeds maximum queue size");
        send(KEPT, 2).one(); // a hit
        impatient.error();
        backend.fail(true);
        gate.open();
        executing.error();
        waiting.error();
        backend.fail(false);
        send(KEPT, 1).one(); // failures are not kept

        Eventually.holds("counted", () -> statistics(KEPT).executions().executionCount() == 3);
        ModelStatistics statistics = consistent(KEPT);
        InferenceTimings inferences = statistics.inferences();
        assertThat(statistics.executions().inferenceCount()).isEqualTo(2 + 5 + 1);
        assertThat(inferences.success().count()).isEqualTo(6);
        assertThat(inferences.cacheHit().count()).isEqualTo(3);
        assertThat(inferences.cacheMiss().count())
                .as("all other lookups, however their requests end")
                .isEqualTo(7);
        assertFailures(statistics, 2, 0, 2);
    }

    /** Each request contains the number of its responses; below zero it fails. */
    @Test
    void responsesOfADecoupledModelAreCountedAsReported() {
        assertThat(stream(2).all()).hasSize(2);
        assertThat(stream(1).all()).hasSize(1);
        assertThat(stream(0).all()).isEmpty();
        stream(-1).error();
        awaitExecutions(4);

        ModelStatistics statistics = consistent(STREAMED);
        assertThat(statistics.inferences().success().count()).isEqualTo(3);
        assertFailures(statistics, 0, 0, 1);
        List<ResponseStatistics> responses = statistics.responses();
        assertThat(responses).hasSize(3);
        assertThat(responses.getFirst())
                .isEqualTo(new ResponseStatistics(
                        new Timing(4, 10 + 10 + 5 + 7),
                        new Timing(2, 2),
                        new Timing(2, 22),
                        new Timing(1, 7),
                        new Timing(1, 5),
                        new Timing(0, 0)));
        assertThat(responses.get(1).success()).isEqualTo(new Timing(1, 21));
        assertThat(responses.get(1).emptyResponse()).isEqualTo(new Timing(1, 5));
        assertThat(responses.get(2).emptyResponse()).isEqualTo(new Timing(1, 5));
    }

    @Test
    void aFailedResponseOfADecoupledModelIsCountedApartFromItsRequest() {
        ReceivedResponses received = stream(3, 2);
        assertThat(received.all()).hasSize(2);
        assertThat(received.failed()).hasSize(1);
        awaitExecutions(1);

        ModelStatistics statistics = consistent(STREAMED);
        assertThat(statistics.inferences().success().count()).isEqualTo(1);
        assertFailures(statistics, 0, 0, 0);
        List<ResponseStatistics> responses = statistics.responses();
        assertThat(responses.getFirst().success().count()).isEqualTo(1);
        assertThat(responses.get(1).fail().count()).isEqualTo(1);
        assertThat(responses.get(1).success().count()).isZero();
        assertThat(responses.get(2).success()).isEqualTo(new Timing(1, 31));
    }

    @Test
    void whatAStoppingModelRefusesIsCountedAsRejected() throws Exception {
        GatedBackend.Gate gate = backend.close(MODEL);
        ReceivedResponses held = send(MODEL, 1);
        gate.awaitExecution();
        CompletableFuture<Void> stopped = CompletableFuture.runAsync(server.server()::close);
        Eventually.holds("not ready", () -> !server.server().isLive());

        // Requests that arrive before the model closes wait instead, and are not counted yet.
        List<ReceivedResponses> sent = new ArrayList<>(List.of(held));
        Eventually.holds("refused", () -> {
            sent.add(send(MODEL, 1));
            return statistics(MODEL).inferences().fail().count() > 0;
        });

        ModelStatistics statistics = statistics(MODEL);
        assertThat(statistics.metrics().failures().get(FailureReason.REJECTED))
                .isEqualTo(statistics.inferences().fail().count());
        gate.open();
        held.one();
        sent.forEach(ReceivedResponses::close);
        stopped.get(60, TimeUnit.SECONDS);
    }

    private ReceivedResponses send(String model, int items) {
        return server.send(request(model, items));
    }

    private ModelRequest request(String model, int items) {
        return server.client().request(model).input("INPUT0", Shape.of(items, 1), new float[items]);
    }

    private ReceivedResponses stream(float... numbers) {
        return server.send(server.client().request(STREAMED).input("INPUT0", Shape.of(1, numbers.length), numbers));
    }

    /** An execution of a decoupled model is counted when it returns, after its responses. */
    private void awaitExecutions(long count) {
        Eventually.holds("executed", () -> statistics(STREAMED).executions().executionCount() == count);
    }

    private ModelStatistics statistics(String model) {
        return server.server().models().statistics(ModelRef.latest(model)).getFirst();
    }

    /** Returns the statistics of a model, and checks figures that depend on others. */
    private ModelStatistics consistent(String model) {
        ModelStatistics statistics = statistics(model);
        InferenceTimings inferences = statistics.inferences();
        long successes = inferences.success().count();
        long executed = successes - inferences.cacheHit().count();
        assertThat(inferences.queue().count()).isEqualTo(successes);
        assertThat(inferences.compute().input().count()).isEqualTo(executed);
        assertThat(inferences.compute().infer().count()).isEqualTo(executed);
        assertThat(inferences.compute().output().count()).isEqualTo(executed);
        assertThat(statistics.executions().batches().stream()
                        .mapToLong(batch -> batch.compute().input().count())
                        .sum())
                .isEqualTo(statistics.executions().executionCount());
        assertThat(statistics.metrics().failures().values().stream()
                        .mapToLong(Long::longValue)
                        .sum())
                .isEqualTo(inferences.fail().count());
        return statistics;
    }

    private static void assertFailures(ModelStatistics statistics, long rejected, long canceled, long backend) {
        assertThat(statistics.metrics().failures())
                .isEqualTo(Map.of(
                        FailureReason.REJECTED, rejected,
                        FailureReason.CANCELED, canceled,
                        FailureReason.BACKEND, backend,
                        FailureReason.OTHER, 0L));
    }
}
