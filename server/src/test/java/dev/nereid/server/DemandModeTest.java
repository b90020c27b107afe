package dev.nereid.server;

import static dev.nereid.server.TestModels.parameter;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.Cancellation;
import dev.nereid.api.InferRequest;
import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InputTensor;
import dev.nereid.api.ModelRef;
import dev.nereid.api.RequestOptions;
import dev.nereid.api.ResponseObserver;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.api.statistics.DemandStatistics;
import dev.nereid.server.cache.CacheOptions;
import dev.nereid.server.options.DemandOptions;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.Sequence;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** A server that loads models with their first requests. See {@code PlanningTest} for what is evicted. */
@Timeout(120)
final class DemandModeTest {
    private static final String MEGABYTE = parameter("memory_bytes", "1000000");

    @TempDir
    private Path directory;

    private Path plugins;
    private TestModels models;

    @BeforeEach
    void setUp() throws IOException {
        plugins = Files.createDirectories(directory.resolve("plugins"));
        models = new TestModels(Files.createDirectories(directory.resolve("models")));
        TestPlugins.recording(plugins);
    }

    @Test
    void loadsAModelWithItsFirstRequest() throws Exception {
        models.recording("m", "", 1, 2).recording("n", "");
        try (NereidServer server = start(0)) {
            assertThat(loads()).isEmpty();
            assertThat(server.isReady()).isTrue();
            assertThat(server.models().isReady(ModelRef.latest("m"))).isTrue();
            assertThat(TestControl.index(server)).containsExactly("m 2 READY", "n 1 READY");
            assertThat(server.models().metadata(ModelRef.latest("m")).inputs()).hasSize(1);
            assertThat(server.models().config(ModelRef.latest("m")).getBackend())
                    .isEqualTo("recording");
            assertThat(server.models().configJson(ModelRef.parse("m", "2"))).contains("recording");
            assertThat(loads()).isEmpty();

            assertThat(infer(server, "m", 3)).containsExactly(3f);

            assertThat(loads()).containsExactly("load m/2 on [cpu]");
            assertThat(infer(server, "m", 4)).containsExactly(4f);
            assertThat(loads()).hasSize(1);
        }
    }

    @Test
    void loadsOnceForManyFirstRequests() throws Exception {
        models.recording("m", "");
        try (NereidServer server = start(0)) {
            List<RecordingObserver> observers = IntStream.range(0, 200)
                    .parallel()
                    .mapToObj(i -> RecordingObserver.to(server, "m", i))
                    .toList();

            for (RecordingObserver observer : observers) {
                assertThat(observer.response().values()).hasSize(1);
                assertThat(observer.terminals()).isEqualTo(1);
            }
            assertThat(loads()).containsExactly("load m/1 on [cpu]");
        }
    }

    @Test
    void evictsTheLeastRecentlyUsedModel() throws Exception {
        for (String name : List.of("a", "b", "c")) {
            models.recording(name, MEGABYTE);
        }
        try (NereidServer server = start(2_000_000)) {
            infer(server, "a", 1);
            infer(server, "b", 1);
            pause();
            infer(server, "a", 1);
            infer(server, "c", 1);

            await(() -> events().contains("close b/1"));
            assertThat(events()).contains("close b/1").doesNotContain("close a/1");
            assertThat(TestControl.index(server)).containsExactly("a 1 READY", "b 1 READY", "c 1 READY");
            assertThat(server.models().isReady(ModelRef.latest("b"))).isTrue();
            assertThat(server.isReady()).isTrue();
            assertThat(infer(server, "b", 2)).containsExactly(2f);
        }
    }

    @Test
    void neverEvictsAModelInUse() throws Exception {
        Path gate = Files.createFile(directory.resolve("gate"));
        models.recording("a", MEGABYTE + parameter("gate", gate.toString()) + parameter("record", ""));
        models.recording("b", MEGABYTE);
        try (NereidServer server = start(1_000_000)) {
            RecordingObserver running = RecordingObserver.to(server, "a", 1);
            await(() -> events().contains("execute 1 on a_0_0"));
            RecordingObserver waiting = RecordingObserver.to(server, "b", 2);
            await(() -> server.demand().orElseThrow().waiting() == 1);
            assertThat(events()).doesNotContain("close a/1", "load b/1 on [cpu]");

            Files.delete(gate);

            assertThat(running.response().values()).containsExactly(1f);
            assertThat(waiting.response().values()).containsExactly(2f);
            assertThat(events()).containsSubsequence("execute 1 on a_0_0", "close a/1", "load b/1 on [cpu]");
        }
    }

    @Test
    void neverEvictsAModelWithALiveSequence() throws Exception {
        models.recording("a", MEGABYTE + "sequence_batching { max_sequence_idle_microseconds: 3600000000 }\n");
        models.recording("b", MEGABYTE);
        try (NereidServer server = start(1_000_000)) {
            RecordingObserver first = new RecordingObserver();
            server.infer(request(server, "a", ofSequence(true, false)), first);
            assertThat(first.response().values()).hasSize(1);
            RecordingObserver waiting = RecordingObserver.to(server, "b", 2);
            await(() -> server.demand().orElseThrow().waiting() == 1);
            assertThat(events()).doesNotContain("close a/1", "load b/1 on [cpu]");

            RecordingObserver last = new RecordingObserver();
            server.infer(request(server, "a", ofSequence(false, true)), last);

            assertThat(last.response().values()).hasSize(1);
            assertThat(waiting.response().values()).containsExactly(2f);
            assertThat(events()).containsSubsequence("close a/1", "load b/1 on [cpu]");
        }
    }

    @Test
    void evictsAModelWhoseSequenceWasIdleForTooLong() throws Exception {
        models.recording("a", MEGABYTE + "sequence_batching { max_sequence_idle_microseconds: 200000 }\n");
        models.recording("b", MEGABYTE);
        try (NereidServer server = start(1_000_000)) {
            RecordingObserver first = new RecordingObserver();
            server.infer(request(server, "a", ofSequence(true, false)), first);
            assertThat(first.response().values()).hasSize(1);

            assertThat(infer(server, "b", 2)).containsExactly(2f);

            assertThat(events()).containsSubsequence("close a/1", "load b/1 on [cpu]");
        }
    }

    private static RequestOptions ofSequence(boolean start, boolean end) {
        return new RequestOptions(
                0, 0, OptionalLong.empty(), Optional.of(new Sequence(new Sequence.Id.Numeric(7), start, end)));
    }

    @Test
    void refusesARequestThatHasWaitedForItsTimeout() throws Exception {
        Path gate = Files.createFile(directory.resolve("gate"));
        models.recording("a", MEGABYTE + parameter("gate", gate.toString()) + parameter("record", ""));
        models.recording("b", MEGABYTE);
        try (NereidServer server = start(1_000_000)) {
            RecordingObserver running = RecordingObserver.to(server, "a", 1);
            await(() -> events().contains("execute 1 on a_0_0"));

            RecordingObserver byTimeout = new RecordingObserver();
            server.infer(
                    request(server, "b", new RequestOptions(0, 50_000, OptionalLong.empty(), Optional.empty())),
                    byTimeout);
            RecordingObserver byDeadline = new RecordingObserver();
            server.infer(
                    request(
                            server,
                            "b",
                            new RequestOptions(
                                    0, 0, OptionalLong.of(System.nanoTime() + 50_000_000), Optional.empty())),
                    byDeadline);

            for (RecordingObserver observer : List.of(byTimeout, byDeadline)) {
                InferenceException error = observer.error();
                assertThat(error.code()).isEqualTo(ErrorCode.UNAVAILABLE);
                assertThat(error.retryAfter()).isPresent();
                assertThat(error.publicMessage())
                        .matches("model 'b' was not loaded within \\d+ ms; models take 1000000 of 1000000 bytes"
                                + " \\(expected: models that become idle, a larger --model-memory-budget, or a longer"
                                + " timeout\\); try again later");
            }
            assertThat(server.demand().orElseThrow().waiting()).isZero();
            Files.delete(gate);
            assertThat(running.response().values()).containsExactly(1f);
            assertThat(events()).as("nobody waits for it").doesNotContain("load b/1 on [cpu]");
        }
    }

    @Test
    void waitsNoLongerThanTheOptionsSay() throws Exception {
        models.recording("m", "");
        Path gate = Files.createFile(directory.resolve("models/m/gate"));
        try (NereidServer server =
                NereidServer.start(options(DemandOptions.DEFAULT.withMaxWait(Duration.ofMillis(30))))) {
            assertThat(RecordingObserver.to(server, "m", 1).error().publicMessage())
                    .startsWith("model 'm' was not loaded within ");
            Files.delete(gate);
            await(() -> server.demand().orElseThrow().memory().containsKey("m"));
        }
    }

    @Test
    void forgetsARequestThatIsCancelledWhileItWaits() throws Exception {
        models.recording("m", "");
        Path gate = Files.createFile(directory.resolve("models/m/gate"));
        try (NereidServer server = start(0)) {
            RecordingObserver cancelled = new RecordingObserver();
            Cancellation handle = server.infer(request(server, "m", RequestOptions.DEFAULT), cancelled);
            RecordingObserver other = RecordingObserver.to(server, "m", 7);
            await(() -> loads().size() == 1);

            handle.cancel();
            handle.cancel();

            assertThat(cancelled.error().code()).isEqualTo(ErrorCode.CANCELLED);
            assertThat(server.demand().orElseThrow().waiting()).isEqualTo(1);
            Files.delete(gate);
            assertThat(other.response().values()).containsExactly(7f);
            assertThat(cancelled.terminals()).isEqualTo(1);
        }
    }

    @Test
    void refusesMoreWaitingRequestsThanItsBound() throws Exception {
        models.recording("m", "");
        Path gate = Files.createFile(directory.resolve("models/m/gate"));
        try (NereidServer server = NereidServer.start(options(DemandOptions.DEFAULT.withMaxWaiting(2, 1 << 20)))) {
            RecordingObserver first = RecordingObserver.to(server, "m", 1);
            RecordingObserver second = RecordingObserver.to(server, "m", 2);

            InferenceException error = RecordingObserver.to(server, "m", 3).error();

            assertThat(error.code()).isEqualTo(ErrorCode.UNAVAILABLE);
            assertThat(error.publicMessage())
                    .isEqualTo(
                            "model 'm' is not loaded, and too many requests wait for loads already; try again later");
            Files.delete(gate);
            assertThat(first.response().values()).containsExactly(1f);
            assertThat(second.response().values()).containsExactly(2f);
            assertThat(infer(server, "m", 4)).containsExactly(4f);
        }
    }

    @Test
    void respondsWithTheReasonOfAFailedLoadAndDoesNotTryAtEachRequest() throws Exception {
        models.recording("m", parameter("fail_load", "1"));
        try (NereidServer server = start(0)) {
            List<RecordingObserver> observers = IntStream.range(0, 10)
                    .mapToObj(i -> RecordingObserver.to(server, "m", i))
                    .toList();
            for (RecordingObserver observer : observers) {
                InferenceException error = observer.error();
                assertThat(error.code()).isEqualTo(ErrorCode.UNAVAILABLE);
                assertThat(error.publicMessage())
                        .startsWith("model 'm' could not be loaded: load failed for model 'm': version 1 is at"
                                + " UNAVAILABLE state: Internal: the model's file is broken")
                        .contains("the next attempt is in 1 s, or at the next load by a client");
            }
            assertThat(loads()).hasSize(1);
            assertThat(RecordingObserver.to(server, "m", 1).error().publicMessage())
                    .contains("is broken");
            assertThat(loads()).hasSize(1);
            assertThat(server.models().isReady(ModelRef.latest("m"))).isFalse();
            assertThat(TestControl.index(server))
                    .containsExactly("m 1 UNAVAILABLE Internal: the model's file is broken");
            assertThat(server.isReady()).as("one model of many").isTrue();
            assertThat(server.demand().orElseThrow().memory()).isEmpty();

            await(() -> {
                RecordingObserver.to(server, "m", 1).await();
                return loads().size() == 2; // a second later
            });
            models.recording("m", "");
            TestControl.load(server, "m");
            assertThat(infer(server, "m", 5)).containsExactly(5f);
        }
    }

    @Test
    void keepsPinnedModelsLoaded() throws Exception {
        models.recording("a", MEGABYTE).recording("b", MEGABYTE + parameter("nereid.pinned", "true"));
        models.recording("c", MEGABYTE).recording("d", MEGABYTE);
        try (NereidServer server = start(3_000_000, "a")) {
            assertThat(loads()).containsExactlyInAnyOrder("load a/1 on [cpu]", "load b/1 on [cpu]");

            infer(server, "c", 1);
            infer(server, "d", 1);
            infer(server, "c", 1);

            assertThat(events()).contains("close c/1", "close d/1").doesNotContain("close a/1", "close b/1");
            assertThat(server.demand().orElseThrow().memory()).containsOnlyKeys("a", "b", "c");
        }
    }

    @Test
    void reportsAPinnedModelThatIsMissingOrTooLarge() throws Exception {
        models.recording("a", "");
        for (String name : List.of("a", "missing")) {
            ServerOptions options = options(DemandOptions.DEFAULT.withMemoryBudget(1000), name);
            assertThatThrownBy(() -> NereidServer.start(options))
                    .isInstanceOf(InferenceException.class)
                    .hasMessageContaining(name);
        }
    }

    @Test
    void refusesAModelThatIsLargerThanTheBudget() throws Exception {
        models.recording("m", "");
        try (NereidServer server = start(1000)) {
            assertThat(RecordingObserver.to(server, "m", 1).error().publicMessage())
                    .isEqualTo("model 'm' cannot be loaded: 524288 bytes of memory, but the budget leaves 1000 bytes"
                            + " beside pinned models (expected: a larger --model-memory-budget)");
            assertThat(loads()).isEmpty();
        }
    }

    @Test
    void servesNoModelThatAClientUnloaded() throws Exception {
        models.recording("m", "");
        try (NereidServer server = start(0)) {
            infer(server, "m", 1);

            TestControl.unload(server, "m");

            TestControl.awaitIndex(server, "m 1 UNAVAILABLE unloaded");
            assertThat(RecordingObserver.to(server, "m", 1).error().publicMessage())
                    .isEqualTo("Request for unknown model: 'm' has no available versions");
            assertThat(server.isReady()).isTrue();
            TestControl.load(server, "m");
            assertThat(infer(server, "m", 2)).containsExactly(2f);
            assertThat(loads()).hasSize(2);
        }
    }

    @Test
    void takesUpChangedAndNewModelsAtTheLoadOfAClient() throws Exception {
        models.recording("m", "");
        try (NereidServer server = start(0)) {
            infer(server, "m", 1);
            models.recording("m", "", 1, 2).recording("n", "");
            assertThat(RecordingObserver.to(server, "n", 1).error().code()).isEqualTo(ErrorCode.NOT_FOUND);

            TestControl.load(server, "m");
            TestControl.load(server, "n");

            assertThat(RecordingObserver.to(server, "m", 1).response().version())
                    .isEqualTo(2);
            assertThat(infer(server, "n", 1)).containsExactly(1f);
            assertThat(server.models().metadata(ModelRef.latest("m")).versions())
                    .containsExactly(2L);
        }
    }

    @Test
    void keepsWhatAClientHasSent() throws Exception {
        models.recording("a", MEGABYTE).recording("b", MEGABYTE).recording("c", MEGABYTE);
        String config = "{\"backend\":\"recording\",\"max_batch_size\":8,\"parameters\":{\"memory_bytes\":"
                + "{\"string_value\":\"1000000\"}},\"input\":[{\"name\":\"INPUT0\",\"data_type\":\"TYPE_FP32\","
                + "\"dims\":[-1]}],\"output\":[{\"name\":\"OUTPUT0\",\"data_type\":\"TYPE_FP32\",\"dims\":[-1]}]}";
        try (NereidServer server = start(2_000_000)) {
            TestControl.load(server, "a", config.replace("\"max_batch_size\":8", "\"max_batch_size\":3"), Map.of());
            infer(server, "b", 1);
            infer(server, "c", 1);
            await(() -> events().contains("close a/1"));
            assertThat(infer(server, "a", 1)).containsExactly(1f);
            assertThat(server.models().config(ModelRef.latest("a")).getMaxBatchSize())
                    .as("the configuration stays")
                    .isEqualTo(3);

            TestControl.load(server, "sent", config, Map.of("7/file", ByteBuffer.allocate(3)));
            for (String model : List.of("a", "b", "c", "a")) {
                infer(server, model, 1);
            }

            assertThat(RecordingObserver.to(server, "sent", 1).response().version())
                    .isEqualTo(7);
            assertThat(events()).doesNotContain("close sent/7");
        }
    }

    @Test
    void findsModelsOfNamespaces() throws Exception {
        TestModels others = new TestModels(Files.createDirectories(directory.resolve("others")));
        models.recording("a", MEGABYTE).recording("both", MEGABYTE);
        others.recording("b", MEGABYTE).recording("both", MEGABYTE);
        ServerOptions options = options(
                        ServerOptions.of(models.root(), others.root()),
                        DemandOptions.DEFAULT.withMemoryBudget(1_000_000))
                .withDirectories(directories -> directories.withNamespaces(true));
        try (NereidServer server = NereidServer.start(options)) {
            assertThat(infer(server, "a", 1)).containsExactly(1f);
            assertThat(infer(server, "b", 1)).containsExactly(1f);
            assertThat(infer(server, "a", 1)).containsExactly(1f);
            assertThat(RecordingObserver.to(server, "both", 1).error().publicMessage())
                    .startsWith("There are 2 identifiers of model 'both'");
            assertThat(server.models().isReady(ModelRef.latest("b"))).isTrue();
            TestControl.unload(server, "b");
            assertThat(RecordingObserver.to(server, "b", 1).error().code()).isEqualTo(ErrorCode.NOT_FOUND);
        }
    }

    @Test
    void countsOverEvictions() throws Exception {
        models.recording("a", MEGABYTE).recording("b", MEGABYTE);
        try (NereidServer server = start(1_000_000)) {
            for (int i = 0; i < 3; i++) {
                infer(server, "a", 1);
                infer(server, "b", 1);
            }
            for (String model : List.of("a", "b")) {
                assertThat(server.models()
                                .statistics(ModelRef.latest(model))
                                .getFirst()
                                .inferences()
                                .success()
                                .count())
                        .isEqualTo(3);
            }
            DemandStatistics demand = server.demand().orElseThrow();
            assertThat(demand.loads()).isEqualTo(6);
            assertThat(demand.evictions()).isEqualTo(5);
            assertThat(demand.memory()).containsExactly(Map.entry("b", 1_000_000L));
            assertThat(server.models().statistics()).hasSize(2);
        }
    }

    @Test
    void respondsFromTheCacheAfterAnEvictionUnlessFilesHaveChanged() throws Exception {
        String cached = MEGABYTE + "response_cache { enable: true }\n" + parameter("record", "");
        models.recording("a", cached).recording("b", MEGABYTE);
        ServerOptions options = options(DemandOptions.DEFAULT.withMemoryBudget(1_000_000))
                .withScheduling(scheduling -> scheduling.withCache(CacheOptions.local(1 << 20)));
        try (NereidServer server = NereidServer.start(options)) {
            assertThat(infer(server, "a", 1)).containsExactly(1f);
            await(() -> {
                infer(server, "b", 1);
                return infer(server, "a", 1).equals(List.of(1f)) && executions() == 1; // once it is stored
            });
            infer(server, "b", 1);
            models.recording("a", cached + parameter("other", "1"));

            assertThat(infer(server, "a", 1)).containsExactly(1f);

            assertThat(executions()).as("a changed file").isEqualTo(2);
        }
    }

    private long executions() throws IOException {
        return events().stream().filter(event -> event.startsWith("execute ")).count();
    }

    @Test
    void keepsTheOrderOfASequenceThatWaits() throws Exception {
        models.recording("m", "");
        Path gate = Files.createFile(directory.resolve("models/m/gate"));
        List<Integer> order = Collections.synchronizedList(new ArrayList<>());
        try (NereidServer server = start(0)) {
            for (int i = 0; i < 2_000; i++) {
                if (i == 500) {
                    Files.delete(gate);
                }
                int number = i;
                server.infer(request(server, "m", ofSequence(i == 0, false)), new ResponseObserver() {
                    @Override
                    public void onResponse(InferResponse response) {
                        response.close();
                        order.add(number);
                    }

                    @Override
                    public void onCompleted() {}

                    @Override
                    public void onError(InferenceException error) {
                        order.add(-1);
                    }
                });
            }
            await(() -> order.size() == 2_000);
            assertThat(order).isEqualTo(IntStream.range(0, 2_000).boxed().toList());
        }
    }

    @Test
    void servesAllRequestsWhileModelsComeAndGo() throws Exception {
        List<String> names = List.of("a", "b", "c", "d", "e");
        names.forEach(name -> models.recording(name, MEGABYTE));
        try (NereidServer server = start(2_000_000);
                ExecutorService clients = Executors.newFixedThreadPool(4)) {
            List<Future<Integer>> all = new ArrayList<>();
            for (int client = 0; client < 4; client++) {
                Random random = new Random(client);
                all.add(clients.submit(() -> {
                    int over = 0;
                    for (int i = 0; i < 100; i++) {
                        assertThat(infer(server, names.get(random.nextInt(5)), i))
                                .containsExactly((float) i);
                        long sum = server.demand().orElseThrow().memory().values().stream()
                                .mapToLong(Long::longValue)
                                .sum();
                        over += sum > 2_000_000 ? 1 : 0;
                    }
                    return over;
                }));
            }
            for (Future<Integer> one : all) {
                assertThat(one.get(60, TimeUnit.SECONDS)).isZero();
            }
            assertThat(server.demand().orElseThrow().evictions()).isGreaterThan(10);
            assertThat(server.models().statistics().stream()
                            .mapToLong(model -> model.inferences().success().count())
                            .sum())
                    .isEqualTo(400);
        }
    }

    @Test
    void completesWaitingRequestsAtTheEnd() throws Exception {
        models.recording("m", "").recording("n", MEGABYTE);
        Path gate = Files.createFile(directory.resolve("models/m/gate"));
        List<RecordingObserver> observers = new ArrayList<>();
        try (NereidServer server = start(1_000_000)) {
            observers.add(RecordingObserver.to(server, "m", 1));
            await(() -> loads().size() == 1);
            RecordingObserver waiting = RecordingObserver.to(server, "n", 1);
            observers.add(waiting);

            server.beginExit();

            assertThat(waiting.error().publicMessage()).isEqualTo("Server not ready");
            assertThat(RecordingObserver.to(server, "n", 1).error().publicMessage())
                    .isEqualTo("Server not ready");
            Files.delete(gate);
        }
        for (RecordingObserver observer : observers) {
            observer.await();
            assertThat(observer.terminals()).isEqualTo(1);
        }
    }

    private static InferRequest request(NereidServer server, String model, RequestOptions options) {
        TensorBuffer memory = server.memory().allocate(Float.BYTES);
        InputTensor tensor = InputTensor.of("INPUT0", "FP32", new long[] {1, 1}, memory.segment(), MemoryPlace.HOST);
        return new InferRequest(
                ModelRef.latest(model), "", List.of(tensor), List.of(), Map.of(), options, memory::close);
    }

    /** Waits for longer than the server keeps a use unwritten. */
    private static void pause() throws Exception {
        long until = System.nanoTime() + 3_000_000;
        await(() -> System.nanoTime() - until > 0);
    }

    private interface Condition {
        boolean holds() throws Exception;
    }

    private static void await(Condition condition) throws Exception {
        long end = System.nanoTime() + Duration.ofSeconds(20).toNanos();
        while (!condition.holds()) {
            assertThat(System.nanoTime() - end).as("time left").isNegative();
            Thread.onSpinWait();
        }
    }

    private static List<Float> infer(NereidServer server, String model, float value) {
        return RecordingObserver.to(server, model, value).response().values();
    }

    private List<String> events() throws IOException {
        return Files.readAllLines(directory.resolve("events"));
    }

    private List<String> loads() throws IOException {
        List<String> loads = new ArrayList<>(events());
        loads.removeIf(event -> !event.startsWith("load "));
        return loads;
    }

    private NereidServer start(long budget, String... pinned) throws InterruptedException, InferenceException {
        return NereidServer.start(options(DemandOptions.DEFAULT.withMemoryBudget(budget), pinned));
    }

    private ServerOptions options(DemandOptions demand, String... pinned) {
        return options(ServerOptions.of(models.root()), demand, pinned);
    }

    private ServerOptions options(ServerOptions repositories, DemandOptions demand, String... pinned) {
        return repositories
                .withPlugins(plugins)
                .withBackendSetting(
                        "recording", "events", directory.resolve("events").toString())
                .withLifecycle(lifecycle -> lifecycle.withControl(control -> control.withDemand(demand, pinned)))
                .withModels(model -> model.withInstances(instances -> instances.withProcessors(2)));
    }
}
