package dev.nereid.distribution;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.distribution.process.ExitStatus;
import dev.nereid.distribution.testing.Eventually;
import dev.nereid.distribution.testing.GatedPlugin;
import dev.nereid.distribution.testing.InstalledServer;
import dev.nereid.distribution.testing.Repository;
import dev.nereid.trouble.EndlessFunction;
import dev.nereid.trouble.TroubleBackendProvider;
import inference.GRPCInferenceServiceGrpc;
import inference.ServerLiveRequest;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Misbehavior of plugins, and the reaction of the installed server. */
@Timeout(300)
@Tag("slow")
final class FailuresIT {
    private static final int TIMEOUT_SECONDS = 120;

    /** Enough for direct execution after some that a busy machine interrupted. */
    private static final int SHORT_EXECUTIONS = 3000;

    private static final Map<String, String> SMALL_HEAP = Map.of("NEREID_JAVA_OPTIONS", "-Xmx96m");

    @TempDir
    private Path directory;

    private Repository models;
    private Path plugins;

    @BeforeEach
    void makeModels() {
        models = new Repository(directory.resolve("models"))
                .model("trouble", config("trouble", ""))
                .model("other", config("trouble", ""));
        plugins = GatedPlugin.pack(directory.resolve("plugins"), TroubleBackendProvider.class);
        GatedPlugin.pack(plugins, EndlessFunction.class);
    }

    @Test
    void aStackOverflowFailsItsExecutionAndTheInstanceGoesOn() throws Exception {
        try (InstalledServer server = serve(Map.of())) {
            HttpResponse<String> failed = infer(server, "trouble", TroubleBackendProvider.RECURSE);

            assertThat(failed.statusCode()).isEqualTo(500);
            assertThat(failed.body()).contains("failed unexpectedly: StackOverflowError");
            assertThat(infer(server, "trouble", 4).body()).contains("[4.0]");
            assertThat(server.get("/v2/health/ready").statusCode()).isEqualTo(200);
        }
    }

    @Test
    void anExhaustedHeapEndsTheProcessWithAStatusOfItsOwn() throws Exception {
        try (InstalledServer server = serve(SMALL_HEAP)) {
            send(server, "trouble", TroubleBackendProvider.FILL_HEAP);

            assertEndedWithoutMemory(server.awaitEnd(), "heap");
        }
    }

    @Test
    void aHeapThatAThreadOfABackendExhaustsEndsTheProcessToo() throws Exception {
        try (InstalledServer server = serve(SMALL_HEAP)) {
            send(server, "trouble", TroubleBackendProvider.FILL_HEAP_ELSEWHERE);

            assertEndedWithoutMemory(server.awaitEnd(), "heap");
        }
    }

    @Test
    void anExhaustedMetaspaceEndsTheProcessToo() throws Exception {
        try (InstalledServer server = serve(Map.of("NEREID_JAVA_OPTIONS", "-XX:MaxMetaspaceSize=64m"))) {
            send(server, "trouble", TroubleBackendProvider.FILL_METASPACE);

            assertEndedWithoutMemory(server.awaitEnd(), "metaspace");
        }
    }

    @Test
    void anExhaustedHeapLeavesAServerThatRefusesAndEndsIfTheProcessIsToStay() throws Exception {
        try (InstalledServer server = serve(SMALL_HEAP, "--exit-on-out-of-memory=false")) {
            send(server, "trouble", TroubleBackendProvider.FILL_HEAP);
            Eventually.holds("not live", TIMEOUT_SECONDS, () -> status(server, "/v2/health/live") == 400);

            assertThat(status(server, "/v2/health/ready")).isEqualTo(400);
            HttpResponse<String> refused = infer(server, "other", 4);
            assertThat(refused.statusCode()).isEqualTo(503);
            assertThat(refused.body()).contains("out of memory: the server has to be started again");
            server.awaitErr("out of memory: the server refuses requests, and has to be started again");

            server.signal("TERM");
            assertThat(server.awaitEnd().status()).isIn(0, 1);
        }
    }

    @Test
    void aHeapThatStaysFullLeavesAServerThatEndsIfTheProcessIsToStay() throws Exception {
        try (InstalledServer server = serve(SMALL_HEAP, "--exit-on-out-of-memory=false", "--exit-timeout-secs=5")) {
            send(server, "trouble", TroubleBackendProvider.KEEP_HEAP);
            server.awaitErr("out of memory: the server refuses requests, and has to be started again");

            assertThat(status(server, "/v2/health/live")).isEqualTo(400);
            assertThat(infer(server, "other", 4).statusCode()).isEqualTo(503);

            server.signal("TERM");
            assertThat(server.awaitEnd().status()).isIn(0, 1);
        }
    }

    @Test
    void aHeapThatGrowsIsSeenBeforeItIsFull() throws Exception {
        Files.createFile(models.directory().resolve("trouble/gate"));
        try (InstalledServer server = serve(SMALL_HEAP)) {
            CompletableFuture<HttpResponse<String>> leak =
                    inferLater(server, "trouble", TroubleBackendProvider.LEAK_HEAP);
            server.awaitErr("heap is nearly full after collections: ", " bytes");
            leak.get(TIMEOUT_SECONDS, TimeUnit.SECONDS);

            assertThat(server.metrics("GET", "/metrics").body()).contains("jvm_memory_pool_collection_used_bytes{");
            assertThat(status(server, "/v2/health/ready")).isEqualTo(200);
            assertThat(infer(server, "other", 4).body()).contains("[4.0]");
        }
    }

    private static void assertEndedWithoutMemory(InstalledServer.Result result, String resource) {
        assertThat(result.status()).isEqualTo(ExitStatus.OUT_OF_MEMORY);
        assertThat(result.err().lines().filter(line -> line.startsWith("nereid: ")))
                .containsExactly("nereid: out of memory: " + resource + " exhausted, ends with exit code 3"
                        + " (--exit-on-out-of-memory=false keeps the process, which refuses requests)");
    }

    @Test
    void theExecutionThatExitsFailsAndTheOthersComplete() throws Exception {
        Path gate = Files.createFile(models.directory().resolve("other/gate"));
        try (InstalledServer server = serve(Map.of())) {
            CompletableFuture<HttpResponse<String>> other = inferLater(server, "other", TroubleBackendProvider.WAIT);
            Eventually.holds("executed", TIMEOUT_SECONDS, () -> isExecuted(server, "other"));

            CompletableFuture<HttpResponse<String>> lost = inferLater(server, "trouble", TroubleBackendProvider.EXIT);

            assertThat(lost.get(TIMEOUT_SECONDS, TimeUnit.SECONDS).statusCode()).isEqualTo(503);
            Files.delete(gate);
            assertThat(other.get(TIMEOUT_SECONDS, TimeUnit.SECONDS).body()).contains("[-5.0]");
            InstalledServer.Result result = server.awaitEnd();
            assertThat(result.status()).isEqualTo(TroubleBackendProvider.STATUS);
            assertThat(result.err())
                    .contains("process exits by System.exit", "status=7", "instance/trouble/1/trouble_0")
                    .contains("//dev.nereid.trouble.TroubleBackendProvider")
                    .contains("execution called System.exit", "model=trouble version=1 instance=trouble_0");
        }
    }

    @Test
    void anExitOnAThreadOfThePluginIsNamedToo() throws Exception {
        try (InstalledServer server = serve(Map.of())) {
            assertThat(infer(server, "trouble", TroubleBackendProvider.EXIT_ELSEWHERE)
                            .statusCode())
                    .isIn(200, 503);

            InstalledServer.Result result = server.awaitEnd();
            assertThat(result.status()).isEqualTo(TroubleBackendProvider.STATUS);
            assertThat(result.err())
                    .contains("process exits by System.exit", "status=7", "thread=exiting")
                    .contains("plugin TroubleBackendProvider//dev.nereid.trouble.TroubleBackendProvider");
        }
    }

    @Test
    void anExitDuringTheLoadKeepsItsStatus() throws Exception {
        models.model(
                "trouble", config("trouble", "parameters { key: \"exit_at_load\" value { string_value: \"1\" } }"));

        InstalledServer.Result result = InstalledServer.run(
                "serve",
                "--model-repository=" + models.directory(),
                "--backend-directory=" + plugins,
                "--http-port=0",
                "--grpc-port=0",
                "--metrics-port=0");

        assertThat(result.status()).isEqualTo(TroubleBackendProvider.STATUS);
        assertThat(result.err()).contains("process exits by System.exit");
    }

    @Test
    void theSecondSignalEndsTheProcessAtOnce() throws Exception {
        Files.createFile(models.directory().resolve("other/gate"));
        try (InstalledServer server = serve(Map.of(), "--exit-timeout-secs=600")) {
            send(server, "other", TroubleBackendProvider.WAIT);
            Eventually.holds("executed", TIMEOUT_SECONDS, () -> isExecuted(server, "other"));

            server.signal("TERM");
            server.signal("INT");

            assertThat(server.awaitEnd().status()).isIn(128 + 2, 128 + 15);
        }
    }

    @Test
    void anEndlessFunctionFreezesNoPort() throws Exception {
        models.model("endless", config("endless", ""));
        try (InstalledServer server =
                serve(Map.of(), "--execution-watchdog-secs=1", "--http-thread-count=1", "--exit-timeout-secs=1")) {
            ManagedChannel channel = Grpc.newChannelBuilder(server.address("gRPC"), InsecureChannelCredentials.create())
                    .build();
            send(server, "endless", 1);
            Eventually.holds("overdue", TIMEOUT_SECONDS, () -> status(server, "/v2/models/endless/ready") == 400);

            assertThat(infer(server, "other", 4).body()).contains("[4.0]");
            assertThat(GRPCInferenceServiceGrpc.newBlockingStub(channel)
                            .withDeadlineAfter(TIMEOUT_SECONDS, TimeUnit.SECONDS)
                            .serverLive(ServerLiveRequest.getDefaultInstance())
                            .getLive())
                    .isTrue();
            assertThat(server.metrics("GET", "/metrics").body())
                    .contains("nereid_execution_overdue{model=\"endless\",version=\"1\"} 1\n")
                    .contains("nereid_execution_overdue_total{model=\"endless\",version=\"1\"} 1\n")
                    .contains("nereid_execution_overdue_total{model=\"other\",version=\"1\"} 0\n");
            assertThat(server.post("/v2/repository/index", "{}").body())
                    .contains("\"state\":\"READY\",\"reason\":\"instances whose executions take longer than 1 s:"
                            + " endless_0\"");
            channel.shutdownNow();
            server.interrupt();
            InstalledServer.Result result = server.awaitEnd();
            assertThat(result.status()).isEqualTo(ExitStatus.FAILURE);
            assertThat(result.err().lines().filter(line -> line.contains("has not ended within the exit timeout")))
                    .singleElement()
                    .asString()
                    .contains("execution has not ended", "model=endless version=1 instance=endless_0 requests=1");
            assertThat(result.err())
                    .contains("execution takes longer than its limit", "model=endless", "requestIds=seven")
                    .contains("//dev.nereid.trouble.EndlessFunction.apply");
        }
    }

    @Test
    void aPluginThatLeaksThreadsIsReported() throws Exception {
        try (InstalledServer server = serve(Map.of())) {
            assertThat(infer(server, "trouble", TroubleBackendProvider.LEAK_THREADS)
                            .statusCode())
                    .isEqualTo(200);
            Eventually.holds(
                    "reported", TIMEOUT_SECONDS, () -> server.errSoFar().contains("plugin has started many threads"));

            assertThat(infer(server, "trouble", 4).body()).contains("[4.0]");
            server.awaitErr("loader=plugin TroubleBackendProvider threads=300", "leaked/");
        }
    }

    @Test
    void anEventLoopThatStandsStillIsReportedWithItsModel() throws Exception {
        models.model("hasty", config("trouble", "parameters { key: \"short\" value { string_value: \"1\" } }"));
        Path gate = Files.createFile(models.directory().resolve("hasty/gate"));
        try (InstalledServer server = serve(Map.of(), "--http-thread-count=1", "--execution-watchdog-secs=2")) {
            for (int i = 0; i < SHORT_EXECUTIONS; i++) { // the trial of a declaration, and more for a busy machine
                assertThat(infer(server, "hasty", 4).statusCode()).isEqualTo(200);
            }
            Eventually.holds("idle", TIMEOUT_SECONDS, () -> isIdle(server, "hasty"));
            CompletableFuture<HttpResponse<String>> held = inferLater(server, "hasty", TroubleBackendProvider.WAIT);
            Eventually.holds("held", TIMEOUT_SECONDS, () -> isHeld(server));
            assertThat(isExecuted(server, "hasty"))
                    .as("by the instance's thread")
                    .isFalse();

            // The port of metrics has an event loop that no plugin blocks.
            assertThat(server.metrics("GET", "/v2/health/live").statusCode()).isEqualTo(200);
            assertThat(server.metrics("GET", "/metrics").body())
                    .contains("nv_inference_request_success{model=\"hasty\"");
            Eventually.holds("not ready", TIMEOUT_SECONDS, () -> metricsStatus(server, "/v2/health/ready") == 400);
            Eventually.holds("reported", TIMEOUT_SECONDS, () -> isReported(server));
            long start = System.nanoTime();
            assertThat(InstalledServer.run("models", "--url", server.address("HTTP"))
                            .err())
                    .contains("no response within 10 s, and none to /v2/health/live")
                    .contains("'event loop is blocked'");
            assertThat(Duration.ofNanos(System.nanoTime() - start))
                    .as("the limit of a request is 600 s")
                    .isLessThan(Duration.ofSeconds(60));
            Files.delete(gate);
            held.get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
            Eventually.holds("ready", TIMEOUT_SECONDS, () -> metricsStatus(server, "/v2/health/ready") == 200);
            assertThat(server.metrics("POST", "/v2/health/live").statusCode()).isEqualTo(405);

            // From now on the thread of the instance executes.
            Files.createFile(gate);
            CompletableFuture<HttpResponse<String>> next = inferLater(server, "hasty", TroubleBackendProvider.WAIT);
            Eventually.holds("held again", TIMEOUT_SECONDS, () -> isExecuted(server, "hasty"));
            assertThat(status(server, "/v2/health/live")).isEqualTo(200);
            assertThat(infer(server, "other", 4).body()).contains("[4.0]");
            Files.delete(gate);
            next.get(TIMEOUT_SECONDS, TimeUnit.SECONDS);

            server.interrupt();
            assertThat(server.awaitEnd().err())
                    .contains("event loop is blocked")
                    .contains("model=hasty version=1 instance=hasty_0")
                    .doesNotContain("has been blocked for");
        }
    }

    /** It has an event loop as long as it blocks, and the port of metrics answers. */
    @Test
    void aReadinessCheckThatBlocksIsReported() throws Exception {
        models.model(
                "checking", config("trouble", "parameters { key: \"wait_in_check\" value { string_value: \"1\" } }"));
        Path gate = Files.createFile(models.directory().resolve("checking/gate"));
        try (InstalledServer server = serve(Map.of(), "--http-thread-count=1")) {
            CompletableFuture<Integer> check = CompletableFuture.supplyAsync(
                    () -> status(server, "/v2/models/checking/ready"), InstalledServer.BLOCKING);

            server.awaitErr("event loop is blocked", "TroubledModel.await");
            assertThat(server.metrics("GET", "/v2/health/live").statusCode()).isEqualTo(200);
            assertThat(server.metrics("GET", "/v2/health/ready").statusCode()).isEqualTo(200);
            assertThat(server.metrics("GET", "/metrics").body()).contains("nv_inference_request_success");

            Files.delete(gate);
            assertThat(check.get(TIMEOUT_SECONDS, TimeUnit.SECONDS)).isEqualTo(200);
            assertThat(infer(server, "checking", 4).body()).contains("[4.0]");
        }
    }

    /** Returns whether the log reports a blocked loop. */
    private static boolean isReported(InstalledServer server) {
        return server.errSoFar().contains("event loop is blocked");
    }

    /** Returns whether any thread executes a request that waits for the gate. */
    private static boolean isHeld(InstalledServer server) {
        return stacks(server).contains("TroubledModel.await");
    }

    private static boolean isExecuted(InstalledServer server, String model) {
        return stacks(server, model).contains("TroubledModel.await");
    }

    /** Returns whether the instance of a model is idle, so that an event loop may run it. */
    private static boolean isIdle(InstalledServer server, String model) {
        return stacks(server, model).contains("dev.nereid.scheduler.queue.InstanceHandle");
    }

    /** Returns the stack of the thread of a model's instance. */
    private static String stacks(InstalledServer server, String model) {
        String text = stacks(server);
        int start = text.indexOf("\"instance/" + model + "/");
        int end = text.indexOf("\n\n", start);
        return start < 0 ? "" : text.substring(start, end < 0 ? text.length() : end);
    }

    private static String stacks(InstalledServer server) {
        try {
            Process stacks = new ProcessBuilder(
                            Path.of(System.getProperty("java.home"), "bin/jstack")
                                    .toString(),
                            String.valueOf(server.pid()))
                    .start();
            return new String(stacks.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static int metricsStatus(InstalledServer server, String path) {
        try {
            return server.metrics("GET", path).statusCode();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static int status(InstalledServer server, String path) {
        try {
            return server.get(path).statusCode();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private InstalledServer serve(Map<String, String> environment, String... flags) throws IOException {
        String[] all = new String[flags.length + 1];
        all[0] = "--backend-directory=" + plugins;
        System.arraycopy(flags, 0, all, 1, flags.length);
        return InstalledServer.serve(environment, models.directory(), all);
    }

    private static String config(String backend, String more) {
        return Repository.identity(0, "FP32", "[ -1 ]", more).replace("\"identity\"", "\"" + backend + "\"");
    }

    private static HttpResponse<String> infer(InstalledServer server, String model, int first)
            throws IOException, InterruptedException {
        return server.post(
                "/v2/models/" + model + "/infer",
                "{\"id\":\"seven\",\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"FP32\",\"shape\":[1],\"data\":["
                        + first + "]}]}");
    }

    /** Sends a request without waiting for a response, which may never arrive. */
    private static void send(InstalledServer server, String model, int first) {
        Thread.startVirtualThread(() -> {
            try {
                infer(server, model, first);
            } catch (IOException | InterruptedException e) {
                // The server ended first.
            }
        });
    }

    private static CompletableFuture<HttpResponse<String>> inferLater(InstalledServer server, String model, int first) {
        return CompletableFuture.supplyAsync(
                () -> {
                    try {
                        return infer(server, model, first);
                    } catch (IOException e) {
                        throw new UncheckedIOException(e);
                    } catch (InterruptedException e) {
                        throw new IllegalStateException(e);
                    }
                },
                InstalledServer.BLOCKING);
    }
}
