package dev.nereid.server.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.FatalErrorHandler;
import dev.nereid.api.ModelRef;
import dev.nereid.scheduler.Supervision;
import dev.nereid.server.dependency.ModelDependencies;
import dev.nereid.server.lifecycle.LiveGenerations;
import dev.nereid.server.lifecycle.MemoryRefresh;
import dev.nereid.server.lifecycle.ModelLoadWatch;
import dev.nereid.server.lifecycle.ServedModels;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelClient;
import dev.nereid.spi.ModelRequest;
import dev.nereid.spi.ModelResponse;
import dev.nereid.spi.ModelResponseObserver;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.testkit.FakeInferenceServer;
import dev.nereid.testkit.FakeModel;
import dev.nereid.testkit.LeakCheckingMemory;
import dev.nereid.testkit.ReceivedRequest;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests the cancellation of requests that models send. The model {@code silent} never responds. */
@Timeout(60)
final class ModelRequestCancellationTest {
    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    private final FakeInferenceServer server = new FakeInferenceServer(memory)
            .add(FakeModel.identity("echo", DataType.FP32, 0, 1))
            .add(FakeModel.identity("silent", DataType.FP32, 0, 1).responding(_ -> {}))
            .add(FakeModel.identity("numbers", DataType.FP32, 0, 1).decoupled().responding(received -> {
                respond(received);
                respond(received);
            }));

    private final ModelClient client = client(server);

    /** Receives the calls of a request as texts, one call at a time. */
    private record Events(List<String> calls) implements ModelResponseObserver {
        Events() {
            this(new CopyOnWriteArrayList<>());
        }

        @Override
        public void onResponse(ModelResponse response) {
            calls.add("response");
            response.close();
        }

        @Override
        public void onCompleted() {
            calls.add("completed");
        }

        @Override
        public void onError(BackendException error) {
            calls.add(error.code() + " " + error.getMessage());
        }
    }

    @Test
    void beforeTheRequestIsSentFailsItsStage() {
        ModelRequest request = request("echo");
        request.cancel();

        assertCancelled(request.send().toCompletableFuture());
        assertThat(server.requests()).isEmpty();
    }

    @Test
    void beforeTheRequestIsSentFailsItAtTheObserver() {
        Events events = new Events();
        ModelRequest request = request("echo");
        request.cancel();
        request.cancel();
        assertThat(events.calls()).isEmpty();

        request.send(events);

        assertThat(events.calls()).containsExactly("CANCELLED request was cancelled");
        assertThat(server.requests()).isEmpty();
        assertThatIllegalStateException().isThrownBy(() -> request.send(events));
        assertThatIllegalStateException().isThrownBy(request::send);
        request.cancel();
        assertThat(events.calls()).hasSize(1);
    }

    @Test
    void beforeTheRequestIsSentFailsTheThreadThatWaits() {
        ModelRequest request = request("echo");
        request.cancel();

        assertThatThrownBy(request::sendAndWait)
                .isInstanceOfSatisfying(
                        BackendException.class,
                        error -> assertThat(error.code()).isEqualTo(ErrorCode.CANCELLED));
    }

    @Test
    void endsTheStageOfASentRequest() {
        ModelRequest request = request("silent");
        CompletableFuture<ModelResponse> stage = request.send().toCompletableFuture();
        assertThat(stage).isNotDone();

        request.cancel();
        request.cancel();

        assertCancelled(stage);
        assertThat(server.requests()).singleElement().matches(ReceivedRequest::isCancelled);
    }

    @Test
    void endsASentRequestOnceAtItsObserver() {
        Events events = new Events();
        ModelRequest request = request("silent");
        request.send(events);
        assertThat(events.calls()).isEmpty();

        request.cancel();
        request.cancel();

        assertThat(events.calls()).containsExactly("CANCELLED request was cancelled");
    }

    @Test
    void endsTheWaitOfAnotherThread() throws InterruptedException {
        ModelRequest request = request("silent");
        AtomicReference<Throwable> failure = new AtomicReference<>();
        Thread waiting = Thread.ofVirtual().start(() -> {
            try {
                request.sendAndWait().close();
            } catch (BackendException | InterruptedException e) {
                failure.set(e);
            }
        });
        while (server.requests().isEmpty()) {
            Thread.onSpinWait();
        }

        request.cancel();

        waiting.join();
        assertThat(failure.get()).hasMessage("request was cancelled");
    }

    @Test
    void afterTheEndDoesNothing() {
        Events events = new Events();
        ModelRequest observed = request("echo");
        observed.send(events);
        ModelRequest staged = request("echo");
        CompletableFuture<ModelResponse> stage = staged.send().toCompletableFuture();

        observed.cancel();
        staged.cancel();

        assertThat(events.calls()).containsExactly("response", "completed");
        try (ModelResponse response = stage.join()) {
            assertThat(response.requireOutput("OUTPUT0").floats()).containsExactly(7);
        }
    }

    @Test
    void afterARefusalDoesNothing() {
        Events events = new Events();
        ModelRequest request = client.request("absent");
        request.send(events);
        assertThat(events.calls()).hasSize(1);

        request.cancel();

        assertThat(events.calls()).hasSize(1);
    }

    /** The request responds while it is sent: its cancellation takes effect afterwards. */
    @Test
    void byTheObserverEndsARequestToADecoupledModel() {
        List<String> calls = new CopyOnWriteArrayList<>();
        ModelRequest request = request("numbers");
        request.send(new ModelResponseObserver() {
            @Override
            public void onResponse(ModelResponse response) {
                calls.add("response");
                response.close();
                request.cancel();
            }

            @Override
            public void onCompleted() {
                calls.add("completed");
            }

            @Override
            public void onError(BackendException error) {
                calls.add(error.code().toString());
            }
        });

        assertThat(calls).containsExactly("response", "response", "CANCELLED");
    }

    @Test
    void whileTheRequestIsSentEndsItOnce() throws Exception {
        int rounds = 5_000;
        CyclicBarrier start = new CyclicBarrier(2);
        AtomicReference<ModelRequest> current = new AtomicReference<>(request("silent"));
        Thread cancelling = Thread.ofPlatform().start(() -> {
            for (int i = 0; i < rounds; i++) {
                await(start);
                current.get().cancel();
                await(start);
            }
        });
        for (int i = 0; i < rounds; i++) {
            ModelRequest request = request("silent");
            current.set(request);
            Events events = new Events();
            CompletableFuture<ModelResponse> stage = new CompletableFuture<>();
            await(start);
            if (i % 2 == 0) {
                request.send(events);
            } else {
                stage = request.send().toCompletableFuture();
            }
            await(start);

            if (i % 2 == 0) {
                assertThat(events.calls()).containsExactly("CANCELLED request was cancelled");
            } else {
                assertCancelled(stage);
            }
        }
        cancelling.join();
        assertThat(server.requests()).allMatch(ReceivedRequest::isCancelled);
    }

    private static void assertCancelled(CompletableFuture<ModelResponse> stage) {
        assertThat(stage).isCompletedExceptionally();
        assertThatThrownBy(stage::get)
                .isInstanceOf(ExecutionException.class)
                .cause()
                .isInstanceOfSatisfying(BackendException.class, error -> {
                    assertThat(error.code()).isEqualTo(ErrorCode.CANCELLED);
                    assertThat(error).hasMessage("request was cancelled");
                });
    }

    private ModelRequest request(String model) {
        Tensor input = Tensor.of(DataType.FP32, Shape.of(1), Arena.ofAuto().allocate(4, 4));
        input.data().set(ValueLayout.JAVA_FLOAT, 0, 7);
        return client.request(model).input("INPUT0", input);
    }

    private static void respond(ReceivedRequest received) {
        received.respond(List.of(received.input(0, "OUTPUT0")), Map.of(), false);
    }

    private static void await(CyclicBarrier barrier) {
        try {
            barrier.await();
        } catch (Exception e) {
            throw new AssertionError(e);
        }
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
