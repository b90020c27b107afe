package dev.nereid.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.nereid.api.Cancellation;
import dev.nereid.api.InferRequest;
import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InputTensor;
import dev.nereid.api.ModelRef;
import dev.nereid.api.ResponseFlow;
import dev.nereid.api.ResponseObserver;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.testkit.FakeFlow;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Tests decoupled models that wait for a slow client: the one of the documentation, and where their actions run. */
@Timeout(60)
final class SlowClientTest {
    private static final int ROOM = 3;
    private static final int COUNT = 10;

    @TempDir
    private Path directory;

    private Path plugins;
    private TestModels models;

    @BeforeEach
    void setUp() throws Exception {
        plugins = Files.createDirectories(directory.resolve("plugins"));
        models = new TestModels(Files.createDirectories(directory.resolve("models")));
        TestPlugins.documentedSender(plugins);
        TestPlugins.acting(plugins);
        TestPlugins.narrating(plugins);
        for (String backend : List.of("numbers", "acting", "narrating")) {
            models.model(backend, "backend: \"" + backend + "\"\n" + """
                    model_transaction_policy { decoupled: true }
                    input { name: "IN" data_type: TYPE_INT32 dims: [ 1 ] }
                    output { name: "OUT" data_type: TYPE_INT32 dims: [ 1 ] }
                    instance_group { count: 1 kind: KIND_CPU }
                    """);
        }
    }

    @Test
    void theDocumentedBackendWaitsForItsClient() throws Exception {
        try (NereidServer server = start()) {
            SlowClient client = new SlowClient().ask(server, "numbers", COUNT);

            for (int read = ROOM; read < COUNT; read += ROOM) {
                await(client.flow::isAwaited);
                assertThat(client.numbers).hasSize(read);
                client.read();
            }

            client.awaitEnd();
            assertThat(client.numbers)
                    .containsExactlyElementsOf(IntStream.range(0, COUNT).boxed().toList());
            assertThat(client.error).isNull();
            await(() -> server.memory().bytesInUse() == 0);
        }
    }

    @Test
    void aModelThatPassesResponsesOnPassesTheFlowOn() throws Exception {
        try (NereidServer server = start()) {
            SlowClient client = new SlowClient().ask(server, "narrating", COUNT);

            for (int read = ROOM; read < COUNT; read += ROOM) {
                await(client.flow::isAwaited);
                assertThat(client.numbers).hasSize(read);
                client.read();
            }

            client.awaitEnd();
            assertThat(client.numbers)
                    .containsExactlyElementsOf(IntStream.range(0, COUNT).boxed().toList());
            assertThat(client.error).isNull();
            await(() -> server.memory().bytesInUse() == 0);
        }
    }

    @Test
    void theClientOfAModelThatPassesResponsesOnCancelsAll() throws Exception {
        try (NereidServer server = start()) {
            SlowClient client = new SlowClient().ask(server, "narrating", COUNT);
            await(client.flow::isAwaited);

            client.cancellation.cancel();

            client.awaitEnd();
            assertThat(client.error).isNotNull();
            assertThat(client.error.code()).isEqualTo(ErrorCode.CANCELLED);
            await(() -> server.memory().bytesInUse() == 0);
        }
    }

    @Test
    void theDocumentedBackendEndsWhenItsClientIsGone() throws Exception {
        try (NereidServer server = start()) {
            SlowClient client = new SlowClient().ask(server, "numbers", COUNT);
            await(client.flow::isAwaited);

            client.cancellation.cancel();

            client.awaitEnd();
            assertThat(client.error).isNotNull();
            assertThat(client.error.code()).isEqualTo(ErrorCode.CANCELLED);
            assertThat(client.numbers).hasSize(ROOM);
            await(() -> server.memory().bytesInUse() == 0);
        }
    }

    @Tag("slow")
    @Test
    void aStopEndsARequestThatWaitsForItsClient() throws Exception {
        NereidServer server = start();
        SlowClient client = new SlowClient().ask(server, "numbers", COUNT);
        await(client.flow::isAwaited);

        // It waits for the client as long as it may, and then gives up.
        assertThatExceptionOfType(InferenceException.class).isThrownBy(server::close);

        client.awaitEnd();
        assertThat(client.error).isNotNull();
        assertThat(client.error.code()).isEqualTo(ErrorCode.UNAVAILABLE);
        assertThat(client.numbers).hasSize(ROOM);
        await(() -> server.memory().bytesInUse() == 0);
    }

    @Test
    void runsActionsOnVirtualThreadsOfThePlugin() throws Exception {
        try (NereidServer server = start()) {
            SlowClient client = new SlowClient().ask(server, "acting", 0);

            client.awaitEnd();
            assertThat(client.error).isNull();
            assertThat(client.parameters)
                    .containsEntry("virtual", new ParameterValue.Bool(true))
                    .containsEntry("loader", new ParameterValue.Bool(true));
            assertThat(client.parameters.get("thread").toString()).contains("action/");
        }
    }

    private NereidServer start() throws InterruptedException {
        return NereidServer.start(ServerOptions.of(directory.resolve("models"))
                .withPlugins(plugins)
                .with(o -> o.exitTimeout = Duration.ofSeconds(1)));
    }

    private static void await(BooleanSupplier condition) {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
        while (!condition.getAsBoolean()) {
            assertThat(end - System.nanoTime()).as("time left").isPositive();
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(1));
        }
    }

    /** A client that has room for a few responses. */
    private static final class SlowClient implements ResponseObserver {
        final FakeFlow flow = new FakeFlow();
        final List<Integer> numbers = new CopyOnWriteArrayList<>();
        volatile Map<String, ParameterValue> parameters = Map.of();
        volatile @Nullable InferenceException error;
        volatile Cancellation cancellation = () -> {};
        private final CountDownLatch ended = new CountDownLatch(1);

        SlowClient ask(NereidServer server, String model, int number) {
            TensorBuffer memory = server.memory().allocate(Integer.BYTES);
            memory.segment().set(ValueLayout.JAVA_INT, 0, number);
            InputTensor in =
                    InputTensor.of("IN", DataType.INT32.name(), new long[] {1}, memory.segment(), MemoryPlace.HOST);
            cancellation = server.infer(InferRequest.of(ModelRef.latest(model), List.of(in), memory::close), this);
            return this;
        }

        /** Makes room for as many responses as before. */
        void read() {
            flow.open();
        }

        void awaitEnd() throws InterruptedException {
            assertThat(ended.await(30, TimeUnit.SECONDS)).as("ended").isTrue();
        }

        @Override
        public void onResponse(InferResponse response) {
            boolean last = response.isFinal();
            try (response) {
                parameters = Map.copyOf(response.parameters());
                numbers.add(response.outputs().getFirst().tensor().data().get(ValueLayout.JAVA_INT_UNALIGNED, 0));
            }
            if (numbers.size() % ROOM == 0) {
                flow.close();
            }
            if (last) {
                ended.countDown();
            }
        }

        @Override
        public void onCompleted() {
            ended.countDown();
        }

        @Override
        public void onError(InferenceException failure) {
            error = failure;
            ended.countDown();
        }

        @Override
        public ResponseFlow flow() {
            return flow;
        }
    }
}
