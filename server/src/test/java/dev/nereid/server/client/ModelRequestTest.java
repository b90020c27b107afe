package dev.nereid.server.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.FatalErrorHandler;
import dev.nereid.api.ModelRef;
import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.scheduler.Supervision;
import dev.nereid.server.dependency.ModelDependencies;
import dev.nereid.server.lifecycle.LiveGenerations;
import dev.nereid.server.lifecycle.MemoryRefresh;
import dev.nereid.server.lifecycle.ModelLoadWatch;
import dev.nereid.server.lifecycle.ServedModels;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.DeferredExecution;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.ModelClient;
import dev.nereid.spi.ModelRequest;
import dev.nereid.spi.ModelResponse;
import dev.nereid.spi.ModelResponseObserver;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeBatch;
import dev.nereid.testkit.FakeInferenceServer;
import dev.nereid.testkit.FakeModel;
import dev.nereid.testkit.FakeRequest;
import dev.nereid.testkit.LeakCheckingMemory;
import dev.nereid.testkit.ReceivedRequest;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests requests that models send on behalf of others, and the marks of their responses. */
@Timeout(60)
final class ModelRequestTest {
    private static final ModelSettings SETTINGS = ModelSettings.builder("caller", 1)
            .maxBatchSize(8)
            .input(TensorSpec.of("INPUT0", DataType.FP32, Shape.of(1)))
            .output(TensorSpec.of("OUTPUT0", DataType.FP32, Shape.of(1)))
            .build();

    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    private final FakeInferenceServer server = new FakeInferenceServer(memory)
            .add(FakeModel.identity("echo", DataType.FP32, 0, 1))
            .add(FakeModel.identity("silent", DataType.FP32, 0, 1).responding(_ -> {}))
            .add(FakeModel.identity("numbers", DataType.FP32, 0, 1).decoupled().responding(received -> {
                received.respond(List.of(received.input(0, "OUTPUT0")), Map.of(), false);
                received.respond(List.of(received.input(0, "OUTPUT0")), Map.of(), true);
            }));

    private final ModelClient client = client(server);

    @Test
    void passesParametersAndSequences() {
        request("echo")
                .parameter("flag", true)
                .parameter("integer", 1)
                .parameter("integer", Long.MIN_VALUE)
                .parameter("number", 0.5)
                .parameter("text", "é\0")
                .sequence(Sequence.of("s", true, false))
                .send()
                .thenAccept(ModelResponse::close);

        assertThat(sent().request().parameters())
                .isEqualTo(Map.of(
                        "flag", new ParameterValue.Bool(true),
                        "integer", new ParameterValue.Int(Long.MIN_VALUE),
                        "number", new ParameterValue.Real(0.5),
                        "text", new ParameterValue.Text("é\0")));
        assertThat(sent().request().options().sequence())
                .contains(new Sequence(new Sequence.Id.Text("s"), true, false));
    }

    @Test
    void isCancelledWhenAllRequestsOfTheBatchAre() {
        FakeRequest first = fake("a");
        FakeRequest second = fake("b");
        FakeRequest none = fake("").asNullRequest();
        try (FakeBatch batch = batch(first, none, second)) {
            CompletableFuture<ModelResponse> stage =
                    request("silent").onBehalfOf(batch).send().toCompletableFuture();
            first.cancel();
            first.cancel();
            assertThat(sent().isCancelled()).isFalse();

            second.cancel();

            assertThat(sent().isCancelled()).isTrue();
            assertThat(stage).isCompletedExceptionally();
        }
    }

    @Test
    void isCancelledAtOnceIfAllRequestsOfTheBatchWereCancelled() {
        FakeRequest first = fake("a");
        FakeRequest second = fake("b");
        try (FakeBatch batch = batch(first, second)) {
            first.cancel();
            second.cancel();

            CompletableFuture<ModelResponse> stage =
                    request("silent").onBehalfOf(batch).send().toCompletableFuture();

            assertThat(stage).isCompletedExceptionally();
        }
    }

    /** However the request of a deferred batch ends: with a response, with an error, or cancelled. */
    @Test
    void leavesNothingAtRequestsOfADeferredBatch() {
        FakeRequest first = fake("a");
        FakeRequest second = fake("b");
        try (FakeBatch batch = batch(first, second)) {
            DeferredExecution execution = batch.defer();
            request("echo")
                    .onBehalfOf(batch)
                    .send()
                    .toCompletableFuture()
                    .join()
                    .close();
            assertThat(first.openCancelActions()).isZero();

            ModelRequest cancelled = request("silent").onBehalfOf(batch);
            CompletableFuture<ModelResponse> stage = cancelled.send().toCompletableFuture();
            assertThat(first.openCancelActions()).isOne();
            assertThat(second.openCancelActions()).isOne();
            cancelled.cancel();
            assertThat(stage).isCompletedExceptionally();

            assertThat(client.request("absent").onBehalfOf(batch).send().toCompletableFuture())
                    .isCompletedExceptionally();
            assertThat(first.openCancelActions()).isZero();
            assertThat(second.openCancelActions()).isZero();
            execution.complete();
        }
    }

    @Test
    void hasTheLatestDeadlineOfTheBatch() {
        long late = Long.MAX_VALUE - 5;
        long later = Long.MIN_VALUE + 5; // of the clock, which has no beginning
        try (FakeBatch batch = batch(
                fake("a").withDeadlineNanos(later), fake("b").withDeadlineNanos(late), fake("").asNullRequest())) {
            request("echo")
                    .onBehalfOf(batch)
                    .send()
                    .toCompletableFuture()
                    .join()
                    .close();
        }
        assertThat(sent().request().options().deadlineNanos()).isEqualTo(OptionalLong.of(later));
        assertThat(sent().request().id()).isEmpty();
    }

    @Test
    void hasNoDeadlineIfARequestOfTheBatchHasNone() {
        try (FakeBatch batch = batch(fake("a").withDeadlineNanos(7), fake("b"))) {
            request("echo")
                    .id("own")
                    .onBehalfOf(batch)
                    .send()
                    .toCompletableFuture()
                    .join()
                    .close();
        }
        assertThat(sent().request().options().deadlineNanos()).isEmpty();
        assertThat(sent().request().id()).isEqualTo("own");
    }

    @Test
    void takesABatchOfOneAsThatRequest() {
        try (FakeBatch batch = batch(fake("a").withDeadlineNanos(7))) {
            request("echo")
                    .onBehalfOf(batch)
                    .send()
                    .toCompletableFuture()
                    .join()
                    .close();
        }
        assertThat(sent().request().options().deadlineNanos()).hasValue(7);
        assertThat(sent().request().id()).isEqualTo("a");
    }

    /** The cancellations race with each other, and with the end of the request. */
    @Test
    void isCancelledOnceByRequestsThatAreCancelledTogether() throws Exception {
        int rounds = 2_000;
        CyclicBarrier start = new CyclicBarrier(3);
        for (int i = 0; i < rounds; i++) {
            FakeRequest first = fake("a");
            FakeRequest second = fake("b");
            try (FakeBatch batch = batch(first, second)) {
                CompletableFuture<ModelResponse> stage =
                        request("silent").onBehalfOf(batch).send().toCompletableFuture();
                Thread one = Thread.ofVirtual().start(() -> cancel(first, start));
                Thread two = Thread.ofVirtual().start(() -> cancel(second, start));
                start.await();
                one.join();
                two.join();
                assertThat(stage).isCompletedExceptionally();
                assertThat(first.openCancelActions()).isZero();
                assertThat(second.openCancelActions()).isZero();
            }
        }
    }

    private static void cancel(FakeRequest request, CyclicBarrier start) {
        try {
            start.await();
            request.cancel();
        } catch (Exception e) {
            throw new AssertionError(e);
        }
    }

    @Test
    void marksTheFinalResponse() {
        List<Boolean> marks = new ArrayList<>();
        request("numbers").send(new ModelResponseObserver() {
            @Override
            public void onResponse(ModelResponse response) {
                marks.add(response.isFinal());
                response.close();
            }

            @Override
            public void onCompleted() {}

            @Override
            public void onError(BackendException error) {
                throw new AssertionError(error);
            }
        });
        assertThat(marks).containsExactly(false, true);
        try (ModelResponse response =
                request("echo").send().toCompletableFuture().join()) {
            assertThat(response.isFinal()).isTrue();
        }
    }

    /** Else a called model could read an input past the close of its arena. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void saysWhetherTheCallerOwnsInputs(boolean isNative) {
        try (Arena arena = Arena.ofShared()) {
            MemorySegment own = isNative ? arena.allocate(4, 4) : MemorySegment.ofArray(new byte[4]);

            client.request("echo")
                    .input("INPUT0", Tensor.of(DataType.FP32, Shape.of(1, 1), own))
                    .send()
                    .thenAccept(ModelResponse::close);

            assertThat(sent().request().options().callerOwnsInputs()).isEqualTo(isNative);
        }
    }

    @Test
    void releasesMemoryOfTheCallerWhenNothingReadsItAnyMore() {
        AtomicInteger released = new AtomicInteger();
        CompletableFuture<ModelResponse> stage = client.request("echo")
                .input("INPUT0", input(), released::incrementAndGet)
                .send()
                .toCompletableFuture();

        assertThat(sent().request().options().callerOwnsInputs()).isFalse();
        stage.join().close();
        assertThat(released).hasValue(1);
    }

    @Test
    void releasesMemoryOfTheCallerOfARequestThatIsRefused() {
        AtomicInteger released = new AtomicInteger();
        ModelRequest cancelled = client.request("echo")
                .input("INPUT0", input(), () -> {
                    throw new IllegalStateException("release of a test");
                })
                .input("INPUT1", input(), released::incrementAndGet);
        cancelled.cancel();
        assertThat(cancelled.send().toCompletableFuture()).isCompletedExceptionally();
        assertThat(released).hasValue(1);

        assertThat(client.request("no such model")
                        .input("INPUT0", input(), released::incrementAndGet)
                        .send()
                        .toCompletableFuture())
                .isCompletedExceptionally();
        assertThat(released).hasValue(2);
    }

    /** A model that calls itself may use up its stack anywhere in a request that it sends. */
    @Test
    void releasesMemoryOfTheCallerIfTheStackOfAModelEnds() {
        AtomicInteger released = new AtomicInteger();
        FakeRequest cause = fake("a");
        InferenceRequest deep = (InferenceRequest) Proxy.newProxyInstance(
                ModelRequestTest.class.getClassLoader(),
                new Class<?>[] {InferenceRequest.class},
                (_, method, arguments) -> {
                    if (method.getName().equals("onCancel")) {
                        throw new StackOverflowError();
                    }
                    return method.invoke(cause, arguments);
                });
        ModelRequest request =
                client.request("echo").onBehalfOf(deep).input("INPUT0", input(), released::incrementAndGet);

        assertThatThrownBy(request::send).isInstanceOf(StackOverflowError.class);

        assertThat(released).hasValue(1);
        assertThat(server.requests()).isEmpty();
    }

    private ReceivedRequest sent() {
        return server.requests().getLast();
    }

    private FakeBatch batch(FakeRequest... requests) {
        return new FakeBatch(SETTINGS, memory, requests);
    }

    private static FakeRequest fake(String id) {
        return new FakeRequest(1, List.of()).withId(id).with("INPUT0", input());
    }

    private ModelRequest request(String model) {
        return client.request(model).input("INPUT0", input());
    }

    private static Tensor input() {
        Tensor input = Tensor.of(DataType.FP32, Shape.of(1, 1), Arena.ofAuto().allocate(4, 4));
        input.data().set(ValueLayout.JAVA_FLOAT, 0, 7);
        return input;
    }

    private static ModelClient client(FakeInferenceServer server) {
        LiveGenerations live = new LiveGenerations(FatalErrorHandler.NONE, () -> {});
        ModelLoadWatch watch = new ModelLoadWatch(Supervision.NONE, System::nanoTime);
        MemoryRefresh refresh = new MemoryRefresh(live, Runnable::run, System::nanoTime, FatalErrorHandler.NONE);
        ModelClients clients = new ModelClients(new ServedModels(live, watch, refresh), new ModelDependencies());
        clients.serve(server);
        return clients.of(live.holders().add(new ModelRef("caller", 1), "caller", "plugin", Runnable::run));
    }
}
