package dev.nereid.distribution.execution;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.ModelControl;
import dev.nereid.api.statistics.SequenceStatistics;
import dev.nereid.distribution.testing.AccumulatorModel;
import dev.nereid.distribution.testing.ClientRequest;
import dev.nereid.distribution.testing.Eventually;
import dev.nereid.distribution.testing.InstalledServer;
import dev.nereid.distribution.testing.Repository;
import dev.nereid.distribution.testing.TensorBytes;
import dev.nereid.distribution.testing.TestServer;
import dev.nereid.server.NereidServer;
import inference.GRPCInferenceServiceGrpc;
import inference.ModelStreamInferResponse;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.stub.StreamObserver;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ExecutorCompletionService;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * A thousand sequences at a time, of 32 clients, on four instances: nothing is lost, mixed up or left behind. Some
 * leave half way.
 *
 * <p>{@code -Dnereid.sequenceRequests=50} makes the sequences longer.
 */
@Tag("slow")
class SequenceStressIT {
    private static final String MODEL = "sum";
    private static final int CLIENTS = 32;
    private static final int SEQUENCES = 32;
    private static final int REQUESTS = Integer.getInteger("nereid.sequenceRequests", 10);
    private static final int ALL = CLIENTS * SEQUENCES * REQUESTS;
    private static final int MAX_BATCH_SIZE = 8;
    private static final int INSTANCES = 4;
    private static final int RELOADS = 20;

    /** So that reloads follow each other while sequences of earlier generations live. */
    private static final long PERIOD_MILLIS = Math.min(300, 8 * REQUESTS);

    private static final long TIMEOUT_SECONDS = 120;
    /** Ends the sequences that clients leave half way. */
    private static final String IDLE = "max_sequence_idle_microseconds: 3000000 ";

    /**
     * Ends none that a client goes on with, however slow a busy machine is, but the ones that clients leave:
     * they may have all slots.
     */
    private static final String LONG_IDLE = "max_sequence_idle_microseconds: 15000000 ";

    private static final String DIRECT = "direct { }";
    private static final String OLDEST = "oldest { max_candidate_sequences: 64 }";

    @TempDir
    private Path directory;

    private final SequenceClient.Counts counts = new SequenceClient.Counts();

    @ParameterizedTest
    @ValueSource(strings = {DIRECT, OLDEST})
    void everySumIsExact(String strategy) throws Exception {
        try (TestServer server = TestServer.open(NereidServer.start(TestServer.of(models(IDLE + strategy))))) {
            run(server::grpc, new SequenceClient.Load(MODEL, SEQUENCES, REQUESTS, false, false), () -> {});

            assertNothingLeft(server, strategy);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {DIRECT, OLDEST})
    void everySumIsExactDuringReloads(String strategy) throws Exception {
        Repository models = models(IDLE + strategy);
        try (TestServer server =
                TestServer.open(NereidServer.start(TestServer.of(models).with(o -> o.explicit(MODEL))))) {
            run(server::grpc, new SequenceClient.Load(MODEL, SEQUENCES, REQUESTS, true, false), () -> reload(server));

            assertNothingLeft(server, strategy);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {DIRECT, OLDEST})
    void everyRequestIsAnsweredOrRefusedWhenTheServerStops(String strategy) throws Exception {
        try (InstalledServer server =
                InstalledServer.serve(models(LONG_IDLE + strategy).directory())) {
            String address = server.address("gRPC");
            run(
                    () -> Grpc.newChannelBuilder(address, InsecureChannelCredentials.create())
                            .build(),
                    new SequenceClient.Load(MODEL, SEQUENCES, REQUESTS, false, true),
                    () -> {
                        awaitCompletion(ALL / 2);
                        server.signal("TERM");
                    });

            InstalledServer.Result result = server.awaitEnd();
            assertThat(result.status()).as(result::err).isZero();
            assertThat(result.err()).doesNotContain("ERROR");
        }
    }

    private Repository models(String batching) {
        Repository models = new Repository(directory);
        new AccumulatorModel("BOOL", "UINT64", false).addTo(models, MODEL, batching, MAX_BATCH_SIZE, INSTANCES);
        return models;
    }

    /** An action that runs meanwhile, on the test's thread. */
    private interface Action {
        void run() throws Exception;
    }

    private void run(Supplier<ManagedChannel> connect, SequenceClient.Load load, Action meanwhile) throws Exception {
        ExecutorService threads = Executors.newThreadPerTaskExecutor(
                Thread.ofPlatform().name("client/", 0).factory());
        try {
            ExecutorCompletionService<Void> clients = new ExecutorCompletionService<>(threads);
            for (int i = 0; i < CLIENTS; i++) {
                clients.submit(new SequenceClient(connect, load, i, counts));
            }
            meanwhile.run();
            for (int i = 0; i < CLIENTS; i++) {
                var end = clients.poll(TIMEOUT_SECONDS, TimeUnit.SECONDS);
                assertThat(end).as("the end of a client").isNotNull();
                end.get();
            }
            if (!load.ends()) {
                assertThat(counts.answered().get()).as(counts::toString).isGreaterThanOrEqualTo(ALL);
            }
        } finally {
            threads.shutdownNow();
        }
    }

    private void awaitCompletion(int count) {
        Eventually.holds("answers", TIMEOUT_SECONDS, () -> counts.answered().get() >= count);
    }

    private void reload(TestServer server) throws Exception {
        long next = System.nanoTime();
        for (int i = 1; i <= RELOADS; i++) {
            next += TimeUnit.MILLISECONDS.toNanos(PERIOD_MILLIS);
            while (System.nanoTime() - next < 0) {
                LockSupport.parkNanos(next - System.nanoTime());
            }
            change(i);
            server.server()
                    .control()
                    .load(new ModelControl.Load(MODEL, Optional.empty(), Map.of()))
                    .toCompletableFuture()
                    .get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
        }
    }

    private void change(int number) throws IOException {
        Path config = directory.resolve(MODEL).resolve("config.pbtxt");
        Files.writeString(
                config,
                Files.readString(config) + "parameters { key: \"p" + number + "\" value { string_value: \"x\" } }\n");
    }

    /** All sequences have ended, and as many may have a slot at the same time as there are slots. */
    private static void assertNothingLeft(TestServer server, String strategy) throws InterruptedException {
        int slots = INSTANCES * (strategy.equals(DIRECT) ? MAX_BATCH_SIZE : 64);
        awaitUse(server, 0, 0, slots);
        ManagedChannel channel = server.grpc();
        try {
            BlockingQueue<String> received = new LinkedBlockingQueue<>();
            StreamObserver<inference.ModelInferRequest> stream = GRPCInferenceServiceGrpc.newStub(channel)
                    .modelStreamInfer(new StreamObserver<>() {
                        @Override
                        public void onNext(ModelStreamInferResponse response) {
                            received.add("answer" + response.getErrorMessage());
                        }

                        @Override
                        public void onError(Throwable failure) {
                            received.add(failure.toString());
                        }

                        @Override
                        public void onCompleted() {
                            received.add("completed");
                        }
                    });
            for (boolean end : new boolean[] {false, true}) {
                for (int id = 1; id <= slots; id++) {
                    stream.onNext(ClientRequest.of(MODEL)
                            .input("INPUT", "FP32", TensorBytes.floats(id), 1, 1)
                            .inSequence(id, !end, end)
                            .overGrpc());
                }
                for (int id = 1; id <= slots; id++) {
                    assertThat(received.poll(TIMEOUT_SECONDS, TimeUnit.SECONDS)).isEqualTo("answer");
                }
                awaitUse(server, end ? 0 : slots, end ? 0 : slots, slots);
            }
            stream.onCompleted();
            assertThat(received.poll(TIMEOUT_SECONDS, TimeUnit.SECONDS)).isEqualTo("completed");
        } finally {
            channel.shutdownNow();
        }
        Eventually.holds("no memory in use", 20, () -> server.server().memory().bytesInUse() == 0);
    }

    private static void awaitUse(TestServer server, int live, int used, int slots) {
        Supplier<SequenceStatistics> use =
                () -> server.server().models().sequences().getFirst();
        long least = (long) live * Float.BYTES;
        try {
            Eventually.holds("sequences", 20, () -> {
                SequenceStatistics now = use.get();
                // Sequences share the buffers of batches, which count in full, with rows of null requests and of
                // earlier values. A state is kept after its response was sent.
                return now.live() == live
                        && now.backlog() == 0
                        && now.slotsUsed() == used
                        && now.slots() == slots
                        && now.stateBytes() >= least
                        && now.stateBytes() <= 3 * least;
            });
        } catch (AssertionError e) {
            throw new AssertionError(
                    use.get() + " (expected: " + live + " live on " + slots + " slots, with a state each)", e);
        }
    }
}
