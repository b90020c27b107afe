package dev.nereid.distribution.traffic;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelRef;
import dev.nereid.distribution.testing.CountingServer;
import dev.nereid.distribution.testing.Eventually;
import dev.nereid.distribution.testing.GatedPlugin;
import dev.nereid.distribution.testing.MemoryUse;
import dev.nereid.distribution.testing.Repository;
import dev.nereid.distribution.testing.TestPaths;
import dev.nereid.distribution.testing.TestServer;
import dev.nereid.server.NereidServer;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Tests mixed traffic of eight clients while more models are loaded. The clients send valid and invalid requests over
 * both protocols, and some of them disconnect early: every request completes once, and all memory is released.
 *
 * <p>Models are loaded one after another by name. In each round a gated model delays the next one until half of the
 * requests have completed; then both are loaded, the second by ONNX Runtime. The first round fills all pools; the
 * second, which is identical, must not need more. If it does, which may be due to the compilers of the JVM, further rounds
 * follow: a leak grows in each.
 */
@Tag("slow")
class MixedTrafficIT {
    private static final int CLIENTS = 8;
    private static final int MAX_ROUNDS = 4;
    private static final int REQUESTS = 2_000;
    private static final long SEED = 4_711;
    private static final long TIMEOUT_SECONDS = 300;
    private static final long HEAP_MARGIN = 8 << 20;
    private static final long NATIVE_MARGIN = 64 << 20;
    private static final long IDLE_MEMORY = 32 << 20;

    @TempDir
    private Path directory;

    @Test
    void everyRequestCompletesOnceAndAllMemoryIsReleased() throws Exception {
        Repository models = models();
        List<Path> gates = new ArrayList<>();
        for (int round = 1; round <= MAX_ROUNDS; round++) {
            gates.add(GatedPlugin.close(models, gated(round), "load"));
        }
        Path plugins = GatedPlugin.pack(directory.resolve("plugins"));
        Path[] built = TestPaths.plugins();
        var loading = NereidServer.startLoading(
                TestServer.of(models).withPlugins(built[0], built[1], plugins).with(o -> {
                    o.loadThreads = 1;
                    o.idleBytes = OptionalLong.of(IDLE_MEMORY);
                }));
        CountingServer counting = new CountingServer(loading);
        try (TestServer server = TestServer.open(loading, port -> counting)) {
            for (String early : List.of(Traffic.ECHO, Traffic.SLOW, Traffic.SUM, Traffic.WORDS)) {
                awaitReady(server, early);
            }

            round(server, counting, 1, gates.getFirst());
            MemoryUse before = MemoryUse.now();
            boolean grows = true;
            for (int round = 2; grows; round++) {
                round(server, counting, round, gates.get(round - 1));
                MemoryUse after = MemoryUse.now();
                grows = after.isAbove(before, HEAP_MARGIN, NATIVE_MARGIN);
                if (round == MAX_ROUNDS) {
                    after.assertNotAbove(before, HEAP_MARGIN, NATIVE_MARGIN);
                }
                before = after;
            }

            gates.stream().filter(Files::exists).forEach(GatedPlugin::open); // closing waits for loads
        }
    }

    private Repository models() {
        Path sum = TestPaths.checkout().resolve("examples/models/add_sub/1/model.onnx");
        Path digits = TestPaths.checkout().resolve("examples/models/digits/1/model.onnx");
        String dims = "dims: [ 4 ]";
        String delay = "parameters [ { key: \"execute_delay_ms\" value: { string_value: \"10\" } } ]\n";
        Repository models = new Repository(directory.resolve("models"))
                .model(Traffic.ECHO, Repository.identity(16, "FP32", "[ -1 ]", "dynamic_batching { }\n"))
                .model(Traffic.WORDS, Repository.identity(16, "STRING", "[ -1 ]", ""))
                .model(Traffic.SLOW, Repository.identity(16, "FP32", "[ -1 ]", delay))
                .onnx(
                        Traffic.SUM,
                        sum,
                        "backend: \"onnxruntime\"\nmax_batch_size: 8\ndynamic_batching { }\n"
                                + "input [ { name: \"INPUT0\" data_type: TYPE_INT32 " + dims + " },"
                                + " { name: \"INPUT1\" data_type: TYPE_INT32 " + dims + " } ]\n"
                                + "output [ { name: \"OUTPUT0\" data_type: TYPE_INT32 " + dims + " },"
                                + " { name: \"OUTPUT1\" data_type: TYPE_INT32 " + dims + " } ]\n");
        for (int round = 1; round <= MAX_ROUNDS; round++) {
            models.model(gated(round), GatedPlugin.model());
            models.onnx(network(round), digits);
        }
        return models;
    }

    /** Names a model that is loaded after all others but those of later rounds. */
    private static String gated(int round) {
        return "z" + round + "_gated";
    }

    private static String network(int round) {
        return "z" + round + "_network";
    }

    private static void round(TestServer server, CountingServer counting, int round, Path gate) throws Exception {
        long before = counting.requests();
        AtomicInteger performed = new AtomicInteger();
        CountDownLatch together = new CountDownLatch(1);
        ExecutorService threads = Executors.newFixedThreadPool(CLIENTS);
        try {
            List<Future<?>> clients = new ArrayList<>();
            for (int i = 0; i < CLIENTS; i++) {
                int number = i;
                clients.add(threads.submit(() -> {
                    together.await();
                    // both rounds draw the same, except the name of the late model
                    Traffic traffic = new Traffic(SEED + number, gated(round));
                    try (TrafficClient client = number % 2 == 0 ? new HttpTraffic(server) : new GrpcTraffic(server)) {
                        for (int request = 0; request < REQUESTS; request++) {
                            client.perform(traffic.next());
                            if (performed.incrementAndGet() == CLIENTS * REQUESTS / 2) {
                                GatedPlugin.open(gate);
                            }
                        }
                    }
                    return null;
                }));
            }
            together.countDown();
            for (Future<?> client : clients) {
                client.get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
            }
        } finally {
            threads.shutdownNow();
        }

        assertThat(performed).hasValue(CLIENTS * REQUESTS);
        assertThat(counting.requests() - before).isGreaterThan(CLIENTS * REQUESTS / 2);
        counting.awaitCompletion();
        Eventually.holds("no memory in use", 10, () -> server.server().memory().bytesInUse() == 0);
        awaitReady(server, gated(round));
        awaitReady(server, network(round));
    }

    private static void awaitReady(TestServer server, String model) throws IOException {
        Eventually.holds(model + " ready", 60, () -> {
            try {
                return server.server().models().isReady(ModelRef.latest(model));
            } catch (InferenceException notYet) {
                return false;
            }
        });
    }
}
