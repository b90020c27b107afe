package dev.nereid.distribution.traffic;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelControl;
import dev.nereid.api.ModelStatus;
import dev.nereid.distribution.testing.ClientRequest;
import dev.nereid.distribution.testing.Eventually;
import dev.nereid.distribution.testing.HttpConnection;
import dev.nereid.distribution.testing.HttpRequests;
import dev.nereid.distribution.testing.RawHttpResponse;
import dev.nereid.distribution.testing.Repository;
import dev.nereid.distribution.testing.TableModel;
import dev.nereid.distribution.testing.TensorBytes;
import dev.nereid.distribution.testing.TestServer;
import dev.nereid.server.NereidServer;
import dev.nereid.server.options.ServerOptions;
import inference.GRPCInferenceServiceGrpc;
import inference.ModelInferRequest;
import inference.ModelInferResponse;
import inference.ModelStreamInferResponse;
import io.grpc.ManagedChannel;
import io.grpc.stub.StreamObserver;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.management.JMException;
import javax.management.ObjectName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Tests reloads under load. Thirty-two clients of both protocols, one of each with streams, send requests without a pause
 * while the model is loaded again twice a second: two versions take turns, with a version that cannot be loaded between
 * them. No request fails, and the values of each response are those of the version that it names.
 *
 * <p>{@code -Dnereid.hotReloadSeconds=60} makes it longer.
 */
@Tag("slow")
class HotReloadIT {
    private static final String MODEL = "m";
    private static final int CLIENTS = 32;
    private static final long PERIOD_MILLIS = 500;
    private static final int SECONDS = Integer.getInteger("nereid.hotReloadSeconds", 10);
    private static final long TIMEOUT_SECONDS = 60L + SECONDS;
    private static final int ELEMENTS = 1 << 14;
    private static final long[] INDICES = {1, 5, 2, 14};
    private static final String CONFIG = """
            {"backend": "onnxruntime", "max_batch_size": 16, "dynamic_batching": {},
             "instance_group": [{"kind": "KIND_CPU", "count": 2}],
             "version_policy": {"specific": {"versions": [%s]}},
             "input": [{"name": "INPUT0", "data_type": "TYPE_INT64", "dims": [-1]}],
             "output": [{"name": "OUTPUT0", "data_type": "TYPE_FP32", "dims": [-1]}]}
            """;
    private static final byte[] GENERATE = HttpRequests.post(
            "/v2/models/" + MODEL + "/generate_stream",
            "{\"INPUT0\":[1,5,2,14]}".getBytes(StandardCharsets.UTF_8),
            "Content-Type: application/json");
    private static final Pattern MODELS =
            Pattern.compile(" (\\d+) +\\d+ +dev\\.nereid\\.backend\\.onnx\\.OnnxModel\\s");
    private static final Pattern EVENT =
            Pattern.compile("data: \\{\"OUTPUT0\":\\[(.*?)],\"model_name\":\"m\",\"model_version\":\"(\\d+)\"}\\s+");

    @TempDir
    private Path directory;

    private final Map<String, AtomicLong> byVersion = new ConcurrentHashMap<>();
    private volatile boolean ended;

    @Test
    void noRequestFailsWhileAModelIsReloaded() throws Exception {
        Repository models = new Repository(directory)
                .model(MODEL, TableModel.config("version_policy { specific { versions: [ 1 ] } }\n"));
        TableModel.write(models, MODEL, 1, ELEMENTS);
        TableModel.write(models, MODEL, 2, ELEMENTS);
        Path broken = Files.createDirectories(directory.resolve(MODEL).resolve("3"));
        Files.write(broken.resolve("model.onnx"), Arrays.copyOf(TableModel.bytes(3, ELEMENTS), ELEMENTS));
        ServerOptions options = TestServer.of(models).with(o -> o.explicit(MODEL));
        try (TestServer server = TestServer.open(NereidServer.start(options));
                ExecutorService clients = Executors.newThreadPerTaskExecutor(
                        Thread.ofPlatform().name("client/", 0).factory())) {
            List<Future<Void>> all = new ArrayList<>();
            for (int i = 0; i < CLIENTS; i++) {
                all.add(clients.submit(client(server, i)));
            }
            int failed = reload(server);
            ended = true;
            for (Future<Void> client : all) {
                client.get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
            }

            assertThat(failed).isGreaterThan(SECONDS / 4);
            assertThat(byVersion.keySet()).containsExactlyInAnyOrder("1", "2");
            assertThat(byVersion.values()).allMatch(count -> count.get() > 0);
            Eventually.holds("one generation left", 20, () -> reachableModels() == 1);
            Eventually.holds(
                    "no memory in use", 20, () -> server.server().memory().bytesInUse() == 0);
            List<ModelStatus> index = server.server().models().index();
            assertThat(index)
                    .as("the version that serves, the one before it, and that of the last load, which failed")
                    .extracting(ModelStatus::state, ModelStatus::isUnloaded)
                    .containsExactlyInAnyOrder(
                            tuple(ModelStatus.State.READY, false),
                            tuple(ModelStatus.State.UNAVAILABLE, true),
                            tuple(ModelStatus.State.UNAVAILABLE, false));
            String serving = Long.toString(index.stream()
                    .filter(status -> status.state() == ModelStatus.State.READY)
                    .findFirst()
                    .orElseThrow()
                    .version()
                    .getAsLong());
            assertThat(server.server().models().statistics().stream()
                            .mapToLong(version -> version.executions().inferenceCount())
                            .sum())
                    .as("statistics go on over reloads, those of the version that serves at the end")
                    .isEqualTo(byVersion.get(serving).get());
        }
    }

    /** Returns the number of loaded models of the backend that are reachable, by a histogram of the heap. */
    private static long reachableModels() {
        try {
            Object histogram = ManagementFactory.getPlatformMBeanServer()
                    .invoke(
                            new ObjectName("com.sun.management:type=DiagnosticCommand"),
                            "gcClassHistogram",
                            new Object[] {new String[0]},
                            new String[] {String[].class.getName()});
            Matcher line = MODELS.matcher(histogram.toString());
            return line.find() ? Long.parseLong(line.group(1)) : 0;
        } catch (JMException e) {
            throw new AssertionError(e);
        }
    }

    /** Reloads the model twice a second; returns how many of the loads failed as they had to. */
    private int reload(TestServer server) throws Exception {
        int failed = 0;
        try (ScheduledExecutorService pace = Executors.newSingleThreadScheduledExecutor()) {
            BlockingQueue<Integer> turns = new LinkedBlockingQueue<>();
            List<String> configs = List.of(
                    CONFIG.formatted("2"), CONFIG.formatted("1, 3"), CONFIG.formatted("1"), CONFIG.formatted("3"));
            Future<?> ticks = pace.scheduleAtFixedRate(() -> turns.add(1), 0, PERIOD_MILLIS, TimeUnit.MILLISECONDS);
            for (int turn = 0; turn < SECONDS * TimeUnit.SECONDS.toMillis(1) / PERIOD_MILLIS; turn++) {
                turns.take();
                ModelControl.Load load =
                        new ModelControl.Load(MODEL, Optional.of(configs.get(turn % configs.size())), Map.of());
                try {
                    server.server().control().load(load).toCompletableFuture().get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
                } catch (ExecutionException e) {
                    assertThat(e.getCause())
                            .isInstanceOf(InferenceException.class)
                            .hasMessageContaining("version 3 is at UNAVAILABLE state: ");
                    failed++;
                }
            }
            ticks.cancel(false);
        }
        return failed;
    }

    private Callable<Void> client(TestServer server, int number) {
        return () -> {
            switch (number) {
                case 0 -> generate(server);
                case 1 -> sendOverStream(server);
                default -> {
                    if (number % 2 == 0) {
                        sendOverHttp(server);
                    } else {
                        sendOverGrpc(server);
                    }
                }
            }
            return null;
        };
    }

    private static ClientRequest request() {
        return ClientRequest.of(MODEL).withId("r").input("INPUT0", "INT64", TensorBytes.longs(INDICES), 1, 4);
    }

    private void sendOverHttp(TestServer server) throws IOException {
        byte[] request = request().overHttp();
        try (HttpConnection connection = server.http()) {
            while (!ended) {
                RawHttpResponse response = connection.exchange(request);
                assertThat(response.status()).as(response::text).isEqualTo(200);
                count(
                        response.json().getFieldsOrThrow("model_version").getStringValue(),
                        response.binaryOutputs().get("OUTPUT0"));
            }
        }
    }

    private void generate(TestServer server) throws IOException {
        try (HttpConnection connection = server.http()) {
            while (!ended) {
                RawHttpResponse response = connection.exchange(GENERATE);
                assertThat(response.status()).as(response::text).isEqualTo(200);
                Matcher event = EVENT.matcher(response.text());
                assertThat(event.matches()).as(response::text).isTrue();
                String[] values = event.group(1).split(",", -1);
                float[] floats = new float[values.length];
                for (int i = 0; i < values.length; i++) {
                    floats[i] = Float.parseFloat(values[i]);
                }
                count(event.group(2), TensorBytes.floats(floats));
            }
        }
    }

    private void sendOverGrpc(TestServer server) throws InterruptedException {
        ManagedChannel channel = server.grpc();
        try {
            var stub = GRPCInferenceServiceGrpc.newBlockingStub(channel);
            while (!ended) {
                check(stub.withDeadlineAfter(TIMEOUT_SECONDS, TimeUnit.SECONDS)
                        .modelInfer(request().overGrpc()));
            }
        } finally {
            channel.shutdownNow().awaitTermination(10, TimeUnit.SECONDS);
        }
    }

    private void sendOverStream(TestServer server) throws InterruptedException {
        ManagedChannel channel = server.grpc();
        try {
            BlockingQueue<Object> received = new LinkedBlockingQueue<>();
            StreamObserver<ModelInferRequest> stream =
                    GRPCInferenceServiceGrpc.newStub(channel).modelStreamInfer(new StreamRecorder(received));
            while (!ended) {
                stream.onNext(request().overGrpc());
                Object response = received.poll(TIMEOUT_SECONDS, TimeUnit.SECONDS);
                assertThat(response).isInstanceOfSatisfying(ModelStreamInferResponse.class, message -> {
                    assertThat(message.getErrorMessage()).isEmpty();
                    check(message.getInferResponse());
                });
            }
            stream.onCompleted();
        } finally {
            channel.shutdown().awaitTermination(10, TimeUnit.SECONDS);
        }
    }

    private void check(ModelInferResponse response) {
        count(response.getModelVersion(), response.getRawOutputContents(0).toByteArray());
    }

    /** Counts a response, which is that of exactly the version that it names. */
    private void count(String version, byte[] values) {
        long table = Long.parseLong(version);
        float[] expected = new float[INDICES.length];
        for (int i = 0; i < INDICES.length; i++) {
            expected[i] = TableModel.element(table, INDICES[i]);
        }
        assertThat(values).as("version " + version).isEqualTo(TensorBytes.floats(expected));
        byVersion.computeIfAbsent(version, _ -> new AtomicLong()).incrementAndGet();
    }
}
