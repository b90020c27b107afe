package dev.nereid.distribution.execution;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.util.JsonFormat;
import dev.nereid.api.ModelRef;
import dev.nereid.api.frontend.ApiAccess;
import dev.nereid.distribution.flags.MetricsFlags;
import dev.nereid.distribution.metrics.MetricsEndpoint;
import dev.nereid.distribution.process.EventLoops;
import dev.nereid.distribution.testing.ClientRequest;
import dev.nereid.distribution.testing.Eventually;
import dev.nereid.distribution.testing.GatedPlugin;
import dev.nereid.distribution.testing.HttpConnection;
import dev.nereid.distribution.testing.HttpRequests;
import dev.nereid.distribution.testing.Repository;
import dev.nereid.distribution.testing.ServerExtension;
import dev.nereid.distribution.testing.TensorBytes;
import dev.nereid.distribution.testing.TestServer;
import dev.nereid.http.HttpOptions;
import dev.nereid.plugin.cache.CacheOptions;
import dev.nereid.server.options.ServerOptions;
import inference.GRPCInferenceServiceGrpc;
import inference.InferBatchStatistics;
import inference.InferParameter;
import inference.InferResponseStatistics;
import inference.InferStatistics;
import inference.MemoryUsage;
import inference.ModelInferRequest;
import inference.ModelInferResponse;
import inference.ModelStatistics;
import inference.ModelStatisticsRequest;
import inference.ModelStatisticsResponse;
import inference.ModelStreamInferResponse;
import inference.StatisticDuration;
import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.StreamObserver;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;

/** Compares statistics over HTTP, statistics over gRPC and metrics after a scripted workload. */
class StatisticsIT {
    private static final String MODEL = "gated";
    private static final String KEPT = "kept";
    private static final String STREAMED = "streamed";
    private static final String LIMITS =
            "dynamic_batching { default_queue_policy { max_queue_size: 2" + " allow_timeout_override: true } }\n";
    private static final double NANOS_PER_MICRO = 1e3;

    @TempDir
    private Path directory;

    /** The model of the statistics. */
    private String counted = MODEL;

    private Repository models;

    @RegisterExtension
    private final ServerExtension server = new ServerExtension(this::options);

    private EventLoops metricsLoops;
    private MetricsEndpoint metrics;

    private ServerOptions options() {
        String tagged =
                GatedPlugin.model() + "dynamic_batching { }\nmetric_tags { key: \"team\" value: \"a \\\"b\\\"\" }\n";
        models = new Repository(directory.resolve("models"))
                .model(MODEL, tagged)
                .model(KEPT, GatedPlugin.model() + "response_cache { enable: true }\n" + LIMITS)
                .model(STREAMED, GatedPlugin.model() + "model_transaction_policy { decoupled: true }\n");
        return TestServer.of(models)
                .withPlugins(GatedPlugin.pack(directory.resolve("plugins")))
                .with(o -> o.cache = Optional.of(CacheOptions.local(1 << 20)));
    }

    @BeforeEach
    void openMetrics() throws IOException {
        metricsLoops = EventLoops.start(1);
        MetricsFlags flags = new MetricsFlags();
        flags.port = 0;
        metrics = MetricsEndpoint.start(
                metricsLoops.metrics(),
                "127.0.0.1",
                flags,
                server.server(),
                ApiAccess.OPEN,
                HttpOptions.of(_ -> {}).connections(),
                List.of());
    }

    @AfterEach
    void closeMetrics() {
        metrics.close();
        metricsLoops.close();
    }

    private ClientRequest infer(int items) {
        return ClientRequest.of(counted).input("INPUT0", "FP32", TensorBytes.floats(new float[items]), items, 1);
    }

    private int status(ClientRequest request) throws IOException {
        try (HttpConnection http = server.http()) {
            return http.exchange(request.overHttp()).status();
        }
    }

    /** A call over gRPC that is under way. */
    private record Call(
            ClientCall<ModelInferRequest, ModelInferResponse> call, CompletableFuture<ModelInferResponse> end) {}

    private Call call(int items) {
        return call(infer(items).overGrpc());
    }

    private Call call(ModelInferRequest request) {
        ClientCall<ModelInferRequest, ModelInferResponse> call =
                server.channel().newCall(GRPCInferenceServiceGrpc.getModelInferMethod(), CallOptions.DEFAULT);
        CompletableFuture<ModelInferResponse> end = new CompletableFuture<>();
        ClientCalls.asyncUnaryCall(call, request, new StreamObserver<>() {
            @Override
            public void onNext(ModelInferResponse response) {
                end.complete(response);
            }

            @Override
            public void onError(Throwable error) {
                end.completeExceptionally(error);
            }

            @Override
            public void onCompleted() {}
        });
        return new Call(call, end);
    }

    private ModelStatistics overGrpc() {
        ModelStatisticsResponse response = GRPCInferenceServiceGrpc.newBlockingStub(server.channel())
                .modelStatistics(
                        ModelStatisticsRequest.newBuilder().setName(counted).build());
        assertThat(response.getModelStatsCount()).isEqualTo(1);
        return response.getModelStats(0);
    }

    private List<ModelStatistics> overHttp(String path) throws IOException {
        try (HttpConnection http = server.http()) {
            ModelStatisticsResponse.Builder read = ModelStatisticsResponse.newBuilder();
            JsonFormat.parser().merge(http.exchange(HttpRequests.get(path)).text(), read);
            return read.getModelStatsList();
        }
    }

    private String metricsText() throws IOException, InterruptedException {
        URI address = URI.create("http://127.0.0.1:" + metrics.port() + "/metrics");
        try (HttpClient client = HttpClient.newHttpClient()) {
            return client.send(HttpRequest.newBuilder(address).build(), HttpResponse.BodyHandlers.ofString())
                    .body();
        }
    }

    /** The metrics of the model's requests by their names, without the labels that all of them have. */
    private Map<String, Double> metrics() throws IOException, InterruptedException {
        String tag = "_team=\"a \\\"b\\\"\",";
        String name = "model=\"" + counted + "\",";
        return metricsText()
                .lines()
                .filter(line -> line.contains("model=\"" + counted + "\""))
                .filter(line -> !line.startsWith("nereid_model_load") && !line.startsWith("nereid_model_unload"))
                .map(line -> line.replace(tag, "")
                        .replace(name, "")
                        .replaceFirst(",?version=\"1\"", "")
                        .replace("{}", ""))
                .collect(Collectors.toMap(
                        line -> line.substring(0, line.lastIndexOf(' ')),
                        line -> Double.valueOf(line.substring(line.lastIndexOf(' ') + 1))));
    }

    private double failures(String reason) throws IOException, InterruptedException {
        return metrics().get("nv_inference_request_failure{reason=\"" + reason + "\"}");
    }

    private long pending() {
        return server.server()
                .models()
                .statistics(ModelRef.parse(counted, ""))
                .getFirst()
                .metrics()
                .pending();
    }

    /** Waits for the count of failures. A client that has left cannot see whether all of its call was counted. */
    private void awaitFailures(long count) {
        Eventually.holds(
                "counted", 30, () -> overGrpc().getInferenceStats().getFail().getCount() == count);
    }

    /** An execution of a decoupled model is counted when it returns, after its responses. */
    private void awaitExecutions(long count) {
        Eventually.holds("executed", 30, () -> overGrpc().getExecutionCount() == count);
    }

    @Test
    void nothingIsCountedBeforeTheFirstRequest() throws Exception {
        ModelStatistics statistics = assertTheSameEverywhere();

        assertThat(statistics.getLastInference()).isZero();
        assertThat(statistics.getBatchStatsCount()).isZero();
        assertThat(metrics()).hasSize(19).containsEntry("nv_inference_request_success", 0.0);
        assertThat(metricsText()).contains("\nnv_cpu_memory_total_bytes ", "# TYPE nv_inference_count counter\n");
    }

    @Test
    void aWorkloadIsCountedAsItWas() throws Exception {
        long before = System.currentTimeMillis();
        // Three executions of one item, one of four.
        for (int i = 0; i < 3; i++) {
            assertThat(status(infer(1))).isEqualTo(200);
        }
        call(4).end().get(60, TimeUnit.SECONDS);

        // Not counted: an unknown model, and a request that is wrong.
        assertThat(status(ClientRequest.of("nope").input("INPUT0", "FP32", TensorBytes.floats(1), 1, 1)))
                .isEqualTo(404);
        assertThat(status(ClientRequest.of(MODEL).input("INPUT0", "INT8", new byte[1], 1, 1)))
                .isEqualTo(400);

        // Cancelled while it executes and while it waits; two that waited form an execution of three items.
        Path gate = GatedPlugin.close(models, MODEL, "execute");
        Call executing = call(1);
        Eventually.holds("held", 30, () -> GatedPlugin.isWaitedAt(gate));
        Call one = call(1);
        Call two = call(2);
        HttpConnection leaving = server.http();
        byte[] request = infer(5).overHttp();
        leaving.send(request, 0, request.length);
        Eventually.holds("queued", 30, () -> pending() == 3);
        assertThat(metrics()).containsEntry("nv_inference_pending_request_count", 3.0);
        leaving.close();
        awaitFailures(1);
        executing.call().cancel("changed my mind", null);
        assertThat(executing.end()).failsWithin(60, TimeUnit.SECONDS);
        // Over the same connection: the server has received the cancellation before it responds.
        assertThat(overGrpc().getInferenceStats().getFail().getCount()).isEqualTo(1);
        GatedPlugin.open(gate);
        one.end().get(60, TimeUnit.SECONDS);
        two.end().get(60, TimeUnit.SECONDS);
        awaitFailures(2);

        // An execution that fails.
        Path failing = Files.createFile(models.directory().resolve(MODEL).resolve("execute.fails"));
        assertThat(status(infer(2))).isEqualTo(500);
        Files.delete(failing);

        ModelStatistics statistics = assertTheSameEverywhere();
        assertThat(statistics.getInferenceCount()).isEqualTo(3 + 4 + 3);
        assertThat(statistics.getExecutionCount()).isEqualTo(6);
        assertThat(statistics.getLastInference()).isBetween(before, System.currentTimeMillis());
        assertThat(statistics.getInferenceStats().getSuccess().getCount()).isEqualTo(6);
        assertThat(statistics.getInferenceStats().getFail().getCount()).isEqualTo(3);
        assertThat(statistics.getBatchStatsList().stream()
                        .collect(Collectors.toMap(
                                InferBatchStatistics::getBatchSize,
                                batch -> batch.getComputeInfer().getCount())))
                .isEqualTo(Map.of(1L, 4L, 3L, 1L, 4L, 1L));
        assertThat(failures("CANCELED")).isEqualTo(2);
        assertThat(failures("BACKEND")).isEqualTo(1);
        assertThat(failures("REJECTED")).isZero();
        assertThat(failures("OTHER")).isZero();
        assertThat(metrics()).containsEntry("nv_inference_pending_request_count", 0.0);
    }

    /** Hits, misses, and refusals and rejections by the queue. */
    @Test
    void hitsAndLimitsAreCountedAsTheyWere() throws Exception {
        counted = KEPT;
        for (int i = 0; i < 3; i++) {
            assertThat(status(infer(2))).as("one miss, two hits").isEqualTo(200);
        }
        assertThat(status(infer(5))).as("another miss").isEqualTo(200);

        // One executes, two wait, one of them with a timeout; one more exceeds the queue, and a hit needs no place.
        Path gate = GatedPlugin.close(models, KEPT, "execute");
        Call executing = call(1);
        Eventually.holds("held", 30, () -> GatedPlugin.isWaitedAt(gate));
        Call waiting = call(3);
        Eventually.holds("queued", 30, () -> pending() == 1);
        Call impatient = call(infer(4).overGrpc().toBuilder()
                .putParameters(
                        "timeout",
                        InferParameter.newBuilder().setInt64Param(10_000_000).build())
                .build());
        Eventually.holds("queued", 30, () -> pending() == 2);
        assertThat(status(infer(6))).as("too many").isEqualTo(503);
        assertThat(status(infer(2))).as("a hit").isEqualTo(200);
        assertThat(impatient.end()).failsWithin(60, TimeUnit.SECONDS);
        Path failing = Files.createFile(models.directory().resolve(KEPT).resolve("execute.fails"));
        GatedPlugin.open(gate);
        assertThat(executing.end()).failsWithin(60, TimeUnit.SECONDS);
        assertThat(waiting.end()).failsWithin(60, TimeUnit.SECONDS);
        Files.delete(failing);
        assertThat(status(infer(1))).as("failures are not kept").isEqualTo(200);

        ModelStatistics statistics = assertTheSameEverywhere();
        InferStatistics inferences = statistics.getInferenceStats();
        assertThat(statistics.getInferenceCount()).isEqualTo(2 + 5 + 1);
        assertThat(statistics.getExecutionCount()).isEqualTo(3);
        assertThat(inferences.getSuccess().getCount()).isEqualTo(6);
        assertThat(inferences.getCacheHit().getCount()).isEqualTo(3);
        assertThat(inferences.getCacheMiss().getCount())
                .as("all other lookups, however their requests end")
                .isEqualTo(7);
        assertThat(failures("REJECTED")).isEqualTo(2);
        assertThat(failures("BACKEND")).isEqualTo(2);
        assertThat(failures("CANCELED") + failures("OTHER")).isZero();
    }

    /** Each request contains the number of its responses; below zero it fails. */
    @Test
    void responsesOfADecoupledModelAreCountedAsReported() throws Exception {
        counted = STREAMED;
        assertThat(stream(2)).isEqualTo(2);
        assertThat(stream(1)).isEqualTo(1);
        assertThat(stream(0)).isZero();
        assertThat(stream(-1)).isZero();
        awaitExecutions(4);

        ModelStatistics statistics = assertTheSameEverywhere();
        assertThat(statistics.getExecutionCount()).isEqualTo(4);
        assertThat(statistics.getInferenceStats().getSuccess().getCount()).isEqualTo(3);
        assertThat(failures("BACKEND")).isEqualTo(1);
        Map<String, InferResponseStatistics> responses = statistics.getResponseStatsMap();
        assertThat(responses).containsOnlyKeys("0", "1", "2");
        assertThat(responses.get("0"))
                .isEqualTo(InferResponseStatistics.newBuilder()
                        .setComputeInfer(duration(4, 10 + 10 + 5 + 7))
                        .setComputeOutput(duration(2, 2))
                        .setSuccess(duration(2, 22))
                        .setFail(duration(1, 7))
                        .setEmptyResponse(duration(1, 5))
                        .setCancel(duration(0, 0))
                        .build());
        assertThat(responses.get("1").getSuccess()).isEqualTo(duration(1, 21));
        assertThat(responses.get("1").getEmptyResponse()).isEqualTo(duration(1, 5));
        assertThat(responses.get("2").getEmptyResponse()).isEqualTo(duration(1, 5));
    }

    @Test
    void aFailedResponseOfADecoupledModelIsCountedApartFromItsRequest() throws Exception {
        counted = STREAMED;
        assertThat(stream(3, 2)).isEqualTo(2);
        awaitExecutions(1);

        ModelStatistics statistics = assertTheSameEverywhere();
        assertThat(statistics.getInferenceStats().getSuccess().getCount()).isEqualTo(1);
        assertThat(failures("BACKEND")).isZero();
        Map<String, InferResponseStatistics> responses = statistics.getResponseStatsMap();
        assertThat(responses.get("0").getSuccess().getCount()).isEqualTo(1);
        assertThat(responses.get("1").getFail().getCount()).isEqualTo(1);
        assertThat(responses.get("1").getSuccess().getCount()).isZero();
        assertThat(responses.get("2").getSuccess()).isEqualTo(duration(1, 31));
    }

    private static StatisticDuration duration(long count, long nanos) {
        return StatisticDuration.newBuilder().setCount(count).setNs(nanos).build();
    }

    /** Returns the number of responses. */
    private int stream(float... numbers) throws InterruptedException {
        AtomicInteger responses = new AtomicInteger();
        CountDownLatch ended = new CountDownLatch(1);
        StreamObserver<ModelInferRequest> requests = GRPCInferenceServiceGrpc.newStub(server.channel())
                .modelStreamInfer(new StreamObserver<>() {
                    @Override
                    public void onNext(ModelStreamInferResponse response) {
                        if (response.getErrorMessage().isEmpty()) {
                            responses.incrementAndGet();
                        }
                    }

                    @Override
                    public void onError(Throwable error) {
                        ended.countDown();
                    }

                    @Override
                    public void onCompleted() {
                        ended.countDown();
                    }
                });
        requests.onNext(ClientRequest.of(STREAMED)
                .input("INPUT0", "FP32", TensorBytes.floats(numbers), 1, numbers.length)
                .overGrpc());
        requests.onCompleted();
        assertThat(ended.await(60, TimeUnit.SECONDS)).isTrue();
        return responses.get();
    }

    @Test
    void whatAStoppingModelRefusesIsCountedAsRejected() throws Exception {
        Path gate = GatedPlugin.close(models, MODEL, "execute");
        Call held = call(1);
        Eventually.holds("held", 30, () -> GatedPlugin.isWaitedAt(gate));
        CompletableFuture<Void> stopped = CompletableFuture.runAsync(server.server()::close);
        Eventually.holds("not ready", 30, () -> !server.server().isLive());

        // Requests that arrive before the model closes wait instead, and are not counted yet.
        Eventually.holds("refused", 30, () -> {
            call(1);
            return overGrpc().getInferenceStats().getFail().getCount() > 0;
        });

        ModelStatistics statistics = assertTheSameEverywhere();
        assertThat(failures("REJECTED"))
                .isEqualTo((double) statistics.getInferenceStats().getFail().getCount());
        GatedPlugin.open(gate);
        held.end().get(60, TimeUnit.SECONDS);
        stopped.get(60, TimeUnit.SECONDS);
        assertThat(metricsText()).as("gone with its model").doesNotContain("model=\"gated\",version");
    }

    /** Compares every figure of the three, and returns them. */
    private ModelStatistics assertTheSameEverywhere() throws IOException, InterruptedException {
        ModelStatistics figures = overGrpc();
        assertThat(overHttp("/v2/models/stats")).contains(figures);
        assertThat(overHttp("/v2/models/" + counted + "/stats")).containsExactly(figures);
        assertThat(overHttp("/v2/models/" + counted + "/versions/1/stats")).containsExactly(figures);
        assertThat(figures.getMemoryUsageList())
                .containsExactly(MemoryUsage.newBuilder()
                        .setType("CPU")
                        .setByteSize(1_234)
                        .build());
        InferStatistics inferences = figures.getInferenceStats();
        long successes = inferences.getSuccess().getCount();
        assertThat(inferences.getQueue().getCount()).isEqualTo(successes);
        long hits = inferences.getCacheHit().getCount();
        for (StatisticDuration duration :
                List.of(inferences.getComputeInput(), inferences.getComputeInfer(), inferences.getComputeOutput())) {
            assertThat(duration.getCount()).isEqualTo(successes - hits);
        }
        assertThat(figures.getBatchStatsList().stream()
                        .mapToLong(batch -> batch.getComputeInput().getCount())
                        .sum())
                .isEqualTo(figures.getExecutionCount());
        Map<String, Double> metrics = metrics();
        assertThat(metrics)
                .containsEntry("nv_inference_request_success", (double) successes)
                .containsEntry("nv_inference_count", (double) figures.getInferenceCount())
                .containsEntry("nv_inference_exec_count", (double) figures.getExecutionCount());
        assertThat(metrics.get("nv_model_load_duration_secs")).isPositive();
        assertMicros(
                metrics,
                "nv_inference_request_duration_us",
                inferences.getSuccess(),
                successes + inferences.getCacheMiss().getCount()); // the lookup of a miss is added separately
        assertMicros(metrics, "nv_inference_queue_duration_us", inferences.getQueue());
        assertMicros(metrics, "nv_inference_compute_input_duration_us", inferences.getComputeInput());
        assertMicros(metrics, "nv_inference_compute_infer_duration_us", inferences.getComputeInfer());
        assertMicros(metrics, "nv_inference_compute_output_duration_us", inferences.getComputeOutput());
        if (counted.equals(KEPT)) {
            assertThat(metrics)
                    .containsEntry("nv_cache_num_hits_per_model", (double) hits)
                    .containsEntry("nv_cache_num_misses_per_model", (double)
                            inferences.getCacheMiss().getCount());
            assertMicros(metrics, "nv_cache_hit_duration_per_model", inferences.getCacheHit());
            assertMicros(
                    metrics,
                    "nv_cache_miss_duration_per_model",
                    inferences.getCacheMiss(),
                    2 * inferences.getCacheMiss().getCount()); // a miss is its lookup and at most one insertion
        }
        double failed = 0;
        for (String reason : List.of("REJECTED", "CANCELED", "BACKEND", "OTHER")) {
            failed += failures(reason);
        }
        assertThat(failed).isEqualTo((double) inferences.getFail().getCount());
        return figures;
    }

    private static void assertMicros(Map<String, Double> metrics, String name, StatisticDuration duration) {
        assertMicros(metrics, name, duration, duration.getCount());
    }

    /** Each time that is added loses less than a microsecond. */
    private static void assertMicros(Map<String, Double> metrics, String name, StatisticDuration duration, long times) {
        double micros = metrics.get(name);
        double exact = duration.getNs() / NANOS_PER_MICRO;
        assertThat(micros).as(name).isBetween(exact - times, exact);
    }
}
