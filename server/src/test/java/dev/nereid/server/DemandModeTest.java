package dev.nereid.server;

import static dev.nereid.server.DemandFixture.await;
import static dev.nereid.server.DemandFixture.infer;
import static dev.nereid.server.DemandFixture.request;
import static dev.nereid.server.TestModels.parameter;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.Cancellation;
import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelRef;
import dev.nereid.api.RequestOptions;
import dev.nereid.api.ResponseObserver;
import dev.nereid.api.statistics.FailureReason;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Sequence;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** A server that loads models with their first requests, which wait. */
@Timeout(120)
final class DemandModeTest {
    @TempDir
    private Path directory;

    private DemandFixture fixture;
    private TestModels models;

    @BeforeEach
    void setUp() throws IOException {
        fixture = DemandFixture.in(directory);
        models = fixture.models();
    }

    @Test
    void loadsAModelWithItsFirstRequest() throws Exception {
        models.recording("m", "", 1, 2).recording("n", "");
        try (NereidServer server = fixture.start(0)) {
            assertThat(fixture.loads()).isEmpty();
            assertThat(server.isReady()).isTrue();
            assertThat(server.models().isReady(ModelRef.latest("m"))).isTrue();
            assertThat(TestControl.index(server)).containsExactly("m 2 READY", "n 1 READY");
            assertThat(server.models().metadata(ModelRef.latest("m")).inputs()).hasSize(1);
            assertThat(server.models().config(ModelRef.latest("m")).getBackend())
                    .isEqualTo("recording");
            assertThat(server.models().configJson(ModelRef.parse("m", "2"))).contains("recording");
            assertThat(fixture.loads()).isEmpty();

            assertThat(infer(server, "m", 3)).containsExactly(3f);

            assertThat(fixture.loads()).containsExactly("load m/2 on [cpu]");
            assertThat(infer(server, "m", 4)).containsExactly(4f);
            assertThat(fixture.loads()).hasSize(1);
        }
    }

    @Test
    void loadsOnceForManyFirstRequests() throws Exception {
        models.recording("m", "");
        try (NereidServer server = fixture.start(0)) {
            List<RecordingObserver> observers = IntStream.range(0, 200)
                    .parallel()
                    .mapToObj(i -> RecordingObserver.to(server, "m", i))
                    .toList();

            for (RecordingObserver observer : observers) {
                assertThat(observer.response().values()).hasSize(1);
                assertThat(observer.terminals()).isEqualTo(1);
            }
            assertThat(fixture.loads()).containsExactly("load m/1 on [cpu]");
        }
    }

    @Test
    void refusesARequestThatHasWaitedForItsTimeout() throws Exception {
        Path gate = Files.createFile(directory.resolve("gate"));
        models.recording("a", DemandFixture.MEGABYTE + parameter("gate", gate.toString()) + parameter("record", ""));
        models.recording("b", DemandFixture.MEGABYTE);
        try (NereidServer server = fixture.start(1_000_000)) {
            RecordingObserver running = RecordingObserver.to(server, "a", 1);
            await(() -> fixture.events().contains("execute 1 on a_0_0"));

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

            InferenceException error = byTimeout.error();
            assertThat(error.code()).isEqualTo(ErrorCode.UNAVAILABLE);
            assertThat(error.retryAfter()).isPresent();
            assertThat(error.publicMessage())
                    .matches("model 'b' was not loaded within \\d+ ms; models take 1000000 of 1000000 bytes"
                            + " \\(expected: models that become idle, a larger --model-memory-budget, or a longer"
                            + " timeout\\); try again later");
            assertThat(byDeadline.error().code()).isEqualTo(ErrorCode.CANCELLED);
            assertThat(server.demand().orElseThrow().waiting()).isZero();
            Files.delete(gate);
            assertThat(running.response().values()).containsExactly(1f);
            assertThat(fixture.events()).as("nobody waits for it").doesNotContain("load b/1 on [cpu]");
        }
    }

    @Test
    void waitsNoLongerThanTheOptionsSay() throws Exception {
        models.recording("m", "");
        Path gate = Files.createFile(directory.resolve("models/m/gate"));
        try (NereidServer server = NereidServer.start(fixture.options(o -> o.maxWait = Duration.ofMillis(30)))) {
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
        try (NereidServer server = fixture.start(0)) {
            RecordingObserver cancelled = new RecordingObserver();
            Cancellation handle = server.infer(request(server, "m", RequestOptions.DEFAULT), cancelled);
            RecordingObserver other = RecordingObserver.to(server, "m", 7);
            await(() -> fixture.loads().size() == 1);

            handle.cancel();
            handle.cancel();

            assertThat(cancelled.error().code()).isEqualTo(ErrorCode.CANCELLED);
            assertThat(server.demand().orElseThrow().waiting()).isEqualTo(1);
            Files.delete(gate);
            assertThat(other.response().values()).containsExactly(7f);
            assertThat(cancelled.terminals()).isEqualTo(1);
        }
    }

    /** A front end tells its client of the deadline; a queue timeout means that the server is busy. */
    @Test
    void cancelsARequestAtTheDeadlineOfItsClient() throws Exception {
        models.recording("m", "");
        Path gate = Files.createFile(directory.resolve("models/m/gate"));
        try (NereidServer server = fixture.start(0)) {
            RecordingObserver overdue = new RecordingObserver();
            OptionalLong deadline = OptionalLong.of(System.nanoTime() + 50_000_000);
            server.infer(request(server, "m", new RequestOptions(0, 0, deadline, Optional.empty())), overdue);
            RecordingObserver late = new RecordingObserver();
            server.infer(
                    request(server, "m", new RequestOptions(0, 50_000, OptionalLong.empty(), Optional.empty())), late);

            assertThat(overdue.error().code()).isEqualTo(ErrorCode.CANCELLED);
            assertThat(late.error().code()).isEqualTo(ErrorCode.UNAVAILABLE);
            assertThat(server.demand().orElseThrow().waiting()).isZero();
            Files.delete(gate);
            assertThat(infer(server, "m", 4)).containsExactly(4f);
        }
    }

    @Test
    void refusesMoreWaitingRequestsThanItsBound() throws Exception {
        models.recording("m", "");
        Path gate = Files.createFile(directory.resolve("models/m/gate"));
        try (NereidServer server = NereidServer.start(fixture.options(o -> {
            o.maxWaiting = 2;
            o.maxWaitingBytes = 1 << 20;
        }))) {
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

    @Tag("slow")
    @Test
    void respondsWithTheReasonOfAFailedLoadAndDoesNotTryAtEachRequest() throws Exception {
        models.recording("m", parameter("fail_load", "1"));
        try (NereidServer server = fixture.start(0)) {
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
            assertThat(fixture.loads()).hasSize(1);
            assertThat(RecordingObserver.to(server, "m", 1).error().publicMessage())
                    .contains("is broken");
            assertThat(fixture.loads()).hasSize(1);
            assertThat(server.models().isReady(ModelRef.latest("m"))).isFalse();
            assertThat(TestControl.index(server))
                    .containsExactly("m 1 UNAVAILABLE Internal: the model's file is broken");
            assertThat(server.isReady()).as("one model of many").isTrue();
            assertThat(server.demand().orElseThrow().memory()).isEmpty();

            await(() -> {
                RecordingObserver.to(server, "m", 1).await();
                return fixture.loads().size() == 2; // a second later
            });
            models.recording("m", "");
            TestControl.load(server, "m");
            assertThat(infer(server, "m", 5)).containsExactly(5f);
        }
    }

    @Test
    void servesNoModelThatAClientUnloaded() throws Exception {
        models.recording("m", "");
        try (NereidServer server = fixture.start(0)) {
            infer(server, "m", 1);

            TestControl.unload(server, "m");

            TestControl.awaitIndex(server, "m 1 UNAVAILABLE unloaded");
            assertThat(RecordingObserver.to(server, "m", 1).error().publicMessage())
                    .isEqualTo("Request for unknown model: 'm' has no available versions");
            assertThat(server.isReady()).isTrue();
            TestControl.load(server, "m");
            assertThat(infer(server, "m", 2)).containsExactly(2f);
            assertThat(fixture.loads()).hasSize(2);
        }
    }

    @Test
    void takesUpChangedAndNewModelsAtTheLoadOfAClient() throws Exception {
        models.recording("m", "");
        try (NereidServer server = fixture.start(0)) {
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
    void keepsTheOrderOfASequenceThatWaits() throws Exception {
        models.recording("m", "");
        Path gate = Files.createFile(directory.resolve("models/m/gate"));
        List<Integer> order = Collections.synchronizedList(new ArrayList<>());
        try (NereidServer server = fixture.start(0)) {
            for (int i = 0; i < 2_000; i++) {
                if (i == 500) {
                    Files.delete(gate);
                }
                int number = i;
                RequestOptions options = new RequestOptions(
                        0,
                        0,
                        OptionalLong.empty(),
                        Optional.of(new Sequence(new Sequence.Id.Numeric(7), i == 0, false)));
                server.infer(request(server, "m", options), new ResponseObserver() {
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
    void endsTheSequenceOfARequestThatIsCancelledWhileItWaits() throws Exception {
        models.recording("m", "sequence_batching { max_sequence_idle_microseconds: 3600000000 }\n");
        Path gate = Files.createFile(directory.resolve("models/m/gate"));
        try (NereidServer server = fixture.start(0)) {
            RecordingObserver start = new RecordingObserver();
            RecordingObserver cancelled = new RecordingObserver();
            RecordingObserver behind = new RecordingObserver();
            RecordingObserver again = new RecordingObserver();
            server.infer(request(server, "m", ofSequence(true)), start);
            Cancellation handle = server.infer(request(server, "m", ofSequence(false)), cancelled);
            server.infer(request(server, "m", ofSequence(false)), behind);
            server.infer(request(server, "m", ofSequence(true)), again);
            handle.cancel();
            assertThat(cancelled.error().code()).isEqualTo(ErrorCode.CANCELLED);

            Files.delete(gate);

            start.response();
            assertThat(behind.error().publicMessage()).contains("must specify the START flag");
            again.response();
            assertThat(server.models()
                            .statistics(ModelRef.latest("m"))
                            .getFirst()
                            .metrics()
                            .failures())
                    .containsEntry(FailureReason.CANCELED, 1L);
        }
    }

    /** A cancelled request of a sequence keeps its place, and with it its share of the limit. */
    @Test
    void refusesMoreCancelledRequestsOfSequencesThanItsBound() throws Exception {
        models.recording("m", "sequence_batching { max_sequence_idle_microseconds: 3600000000 }\n");
        Path gate = Files.createFile(directory.resolve("models/m/gate"));
        try (NereidServer server = NereidServer.start(fixture.options(o -> {
            o.maxWaiting = 3;
            o.maxWaitingBytes = 1 << 20;
        }))) {
            RecordingObserver start = new RecordingObserver();
            server.infer(request(server, "m", ofSequence(true)), start);
            for (int i = 0; i < 2; i++) {
                server.infer(request(server, "m", ofSequence(false)), new RecordingObserver())
                        .cancel();
            }

            RecordingObserver refused = new RecordingObserver();
            server.infer(request(server, "m", ofSequence(false)), refused);
            assertThat(refused.error().publicMessage()).contains("too many requests wait for loads already");

            Files.delete(gate);
            start.response();
            for (int i = 0; i < 4; i++) {
                RecordingObserver later = new RecordingObserver();
                server.infer(request(server, "m", ofSequence(true)), later);
                later.response();
            }
        }
    }

    /** Without another request nothing waits for the load, and the next one begins it again. */
    @Test
    void waitsForNoModelWhenAllRequestsOfASequenceAreCancelled() throws Exception {
        models.recording("m", "sequence_batching { max_sequence_idle_microseconds: 3600000000 }\n");
        Path gate = Files.createFile(directory.resolve("models/m/gate"));
        try (NereidServer server = fixture.start(0)) {
            List<Cancellation> handles = new ArrayList<>();
            for (int i = 0; i < 3; i++) {
                handles.add(server.infer(request(server, "m", ofSequence(i == 0)), new RecordingObserver()));
            }
            handles.forEach(Cancellation::cancel);
            assertThat(server.demand().orElseThrow().waiting()).isZero();

            RecordingObserver next = new RecordingObserver();
            server.infer(request(server, "m", ofSequence(true)), next);
            Files.delete(gate);
            next.response();
        }
    }

    private static RequestOptions ofSequence(boolean start) {
        return new RequestOptions(
                0, 0, OptionalLong.empty(), Optional.of(new Sequence(new Sequence.Id.Numeric(7), start, false)));
    }

    @Test
    void completesWaitingRequestsAtTheEnd() throws Exception {
        models.recording("m", "").recording("n", DemandFixture.MEGABYTE);
        Path gate = Files.createFile(directory.resolve("models/m/gate"));
        List<RecordingObserver> observers = new ArrayList<>();
        try (NereidServer server = fixture.start(1_000_000)) {
            observers.add(RecordingObserver.to(server, "m", 1));
            await(() -> fixture.loads().size() == 1);
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
}
