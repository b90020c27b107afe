package dev.nereid.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelRequest;
import dev.nereid.spi.ModelResponse;
import dev.nereid.spi.ModelResponseObserver;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.lang.foreign.Arena;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;

final class FakeModelRequestTest {
    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    private final FakeModelClient client = new FakeModelClient(memory);
    private final List<String> calls = new ArrayList<>();

    private final ModelResponseObserver observer = new ModelResponseObserver() {
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
            calls.add(error.code().toString());
        }
    };

    @Test
    void failsAtTheObserverIfCancelledBeforeItIsSent() {
        ModelRequest request = client.request("m");
        request.cancel();
        request.cancel();
        assertThat(calls).isEmpty();

        request.send(observer);

        assertThat(calls).containsExactly("CANCELLED");
        assertThat(client.sent()).isEmpty();
        assertThatIllegalStateException().isThrownBy(() -> request.send(observer));
    }

    @Test
    void failsItsStageIfCancelledBeforeItIsSent() {
        ModelRequest request = client.request("m");
        request.cancel();

        assertCancelled(request.send().toCompletableFuture());
    }

    @Test
    void failsOnceWhenCancelled() {
        ModelRequest request = client.request("m");
        request.send(observer);
        FakeModelRequest sent = client.sent().getFirst();
        sent.respond(values());

        request.cancel();
        request.cancel();
        sent.respond(values());
        sent.complete();

        assertThat(calls).containsExactly("response", "CANCELLED");
    }

    @Test
    void failsItsStageWhenCancelled() {
        ModelRequest request = client.request("m");
        CompletableFuture<ModelResponse> stage = request.send().toCompletableFuture();

        request.cancel();

        assertCancelled(stage);
    }

    @Test
    void doesNothingWhenCancelledAfterItsEnd() {
        ModelRequest request = client.request("m");
        request.send(observer);
        client.sent().getFirst().complete();

        request.cancel();

        assertThat(calls).containsExactly("completed");
    }

    @Test
    void endsAfterTheCallInWhichItIsCancelled() {
        ModelRequest request = client.request("m");
        request.send(new ModelResponseObserver() {
            @Override
            public void onResponse(ModelResponse response) {
                response.close();
                request.cancel();
                observer.onResponse(response);
                throw new IllegalStateException("a fault");
            }

            @Override
            public void onCompleted() {
                observer.onCompleted();
            }

            @Override
            public void onError(BackendException error) {
                observer.onError(error);
            }
        });

        assertThatIllegalStateException()
                .isThrownBy(() -> client.sent().getFirst().respond(values()))
                .withMessage("a fault");

        assertThat(calls).containsExactly("response", "CANCELLED");
    }

    @Test
    void deliversNestedResponses() {
        FakeModelRequest[] sent = new FakeModelRequest[1];
        client.request("m").send(new ModelResponseObserver() {
            @Override
            public void onResponse(ModelResponse response) {
                observer.onResponse(response);
                if (calls.size() == 1) {
                    sent[0].respondFinally(values());
                    assertThat(calls).hasSize(1);
                }
            }

            @Override
            public void onCompleted() {
                observer.onCompleted();
            }

            @Override
            public void onError(BackendException error) {
                observer.onError(error);
            }
        });
        sent[0] = client.sent().getFirst();

        sent[0].respond(values());
        sent[0].respond(values());

        assertThat(calls).containsExactly("response", "response", "completed");
        assertThat(sent[0].isComplete()).isTrue();
        assertThat(sent[0].openResponses()).isZero();
    }

    @Test
    void countsNoResponseThatCannotBeMade() {
        client.request("m").send(observer);
        FakeModelRequest sent = client.sent().getFirst();
        Map<String, Tensor> values = new LinkedHashMap<>(values());
        try (Arena arena = Arena.ofConfined()) {
            values.put("FREED", Tensor.of(DataType.INT8, Shape.of(1), arena.allocate(1)));
        }

        assertThatIllegalStateException().isThrownBy(() -> sent.respond(values));

        assertThat(calls).isEmpty();
        assertThat(sent.openResponses()).isZero();
    }

    @Test
    void countsResponsesThatAreNotClosed() {
        ModelRequest request = client.request("m");
        CompletableFuture<ModelResponse> stage = request.send().toCompletableFuture();
        FakeModelRequest sent = client.sent().getFirst();
        sent.respond(values());
        assertThat(sent.openResponses()).isEqualTo(1);

        stage.join().close();
        stage.join().close();

        assertThat(sent.openResponses()).isZero();
    }

    @Test
    void endsOnceWhenCancelledWhileItIsSent() throws InterruptedException {
        for (int i = 0; i < 1_000; i++) {
            AtomicInteger ends = new AtomicInteger();
            ModelRequest request = client.request("m");
            Thread cancelling = Thread.ofVirtual().start(request::cancel);
            request.send(new ModelResponseObserver() {
                @Override
                public void onResponse(ModelResponse response) {
                    throw new AssertionError("a response");
                }

                @Override
                public void onCompleted() {
                    throw new AssertionError("an end without error");
                }

                @Override
                public void onError(BackendException error) {
                    ends.incrementAndGet();
                }
            });
            cancelling.join();
            assertThat(ends).hasValue(1);
        }
    }

    @Test
    void takesInputsOfEachType() {
        Shape shape = Shape.of(1, 2);
        client.request("m")
                .input("floats", shape, 1f, 2.5f)
                .input("doubles", shape, 1, 2.5)
                .input("ints", shape, 1, 2)
                .input("longs", shape, 1, 2L)
                .input("texts", shape, "a", "ö")
                .send(observer);

        Map<String, Tensor> inputs = client.sent().getFirst().inputs();
        assertThat(inputs.get("floats").floats()).containsExactly(1, 2.5f);
        assertThat(inputs.get("doubles").doubles()).containsExactly(1, 2.5);
        assertThat(inputs.get("ints").ints()).containsExactly(1, 2);
        assertThat(inputs.get("longs").longs()).containsExactly(1, 2);
        assertThat(inputs.get("texts").strings()).containsExactly("a", "ö");
        assertThat(List.of("floats", "doubles", "ints", "longs", "texts"))
                .extracting(name -> inputs.get(name).type())
                .containsExactly(DataType.FP32, DataType.FP64, DataType.INT32, DataType.INT64, DataType.BYTES);
        assertThat(inputs.values()).extracting(Tensor::shape).containsOnly(shape);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> client.request("m").input("ints", shape, 1));
    }

    @Test
    void responsesHaveTheIdOfTheRequest() {
        CompletionStage<ModelResponse> sent = client.request("m").id("i").send();
        client.sent().getFirst().respond(Map.of());

        try (ModelResponse response = sent.toCompletableFuture().join()) {
            assertThat(response.id()).isEqualTo("i");
        }
    }

    @Test
    void isCancelledWhenAllRequestsOfABatchAre() {
        ModelSettings settings =
                ModelSettings.builder("caller", 1).maxBatchSize(2).build();
        FakeRequest first = new FakeRequest(1, List.of()).withDeadlineNanos(3);
        FakeRequest second = new FakeRequest(1, List.of()).withDeadlineNanos(5);
        try (FakeBatch batch = new FakeBatch(settings, memory, first, second)) {
            client.request("m").onBehalfOf(batch).id("i").version(2).send(observer);
            FakeModelRequest sent = client.sent().getFirst();
            assertThat(sent.causes()).containsExactly(first, second);
            assertThat(sent.cause()).isEmpty();
            assertThat(sent.deadlineNanos()).hasValue(5);
            assertThat(sent.id()).isEqualTo("i");
            assertThat(sent.version()).hasValue(2);

            first.cancel();
            assertThat(calls).isEmpty();
            second.cancel();

            assertThat(calls).containsExactly("CANCELLED");
            assertThat(first.openCancelActions()).isZero();
        }
    }

    @Test
    void doesNotWaitForACompleteRequestOfABatch() {
        ModelSettings settings =
                ModelSettings.builder("caller", 1).maxBatchSize(2).build();
        FakeRequest first = new FakeRequest(1, List.of());
        FakeRequest second = new FakeRequest(1, List.of());
        try (FakeBatch batch = new FakeBatch(settings, memory, first, second)) {
            first.fail(new BackendException(ErrorCode.INTERNAL, "failed by the backend"));
            client.request("m").onBehalfOf(batch).send(observer);

            second.cancel();

            assertThat(calls).containsExactly("CANCELLED");
        }
    }

    @Test
    void marksTheFinalResponse() {
        List<Boolean> marks = new ArrayList<>();
        client.request("m").send(new ModelResponseObserver() {
            @Override
            public void onResponse(ModelResponse response) {
                marks.add(response.isFinal());
                response.close();
            }

            @Override
            public void onCompleted() {
                calls.add("completed");
            }

            @Override
            public void onError(BackendException error) {}
        });
        client.sent().getFirst().respond(values());
        client.sent().getFirst().respondFinally(values());

        assertThat(marks).containsExactly(false, true);
        assertThat(calls).containsExactly("completed");
    }

    @Test
    void refusesARequest() {
        BackendException error = new BackendException(ErrorCode.UNAVAILABLE, "full");
        client.request("m").send(observer);
        client.request("m").send(new ModelResponseObserver() {
            @Override
            public void onResponse(ModelResponse response) {}

            @Override
            public void onCompleted() {}

            @Override
            public void onError(BackendException failure) {}

            @Override
            public void onRefused(BackendException failure) {
                calls.add("refused: " + failure.getMessage());
            }
        });
        CompletableFuture<ModelResponse> stage = client.request("m").send().toCompletableFuture();
        client.sent().forEach(request -> request.refuse(error));

        assertThat(calls).containsExactly("UNAVAILABLE", "refused: full");
        assertThat(stage).isCompletedExceptionally();
    }

    @Test
    void knowsDecoupledModels() {
        client.withDecoupled("stream");
        client.load("m");

        assertThat(client.isDecoupled("stream", -1)).isTrue();
        assertThat(client.isDecoupled("m", -1)).isFalse();
        assertThatThrownBy(() -> client.isDecoupled("absent", 1))
                .hasMessageContaining("Request for unknown model: 'absent'");
    }

    @Test
    void recordsLoadsAndUnloads() {
        client.load("m");
        assertThat(client.isReady("m", 1)).isTrue();
        client.load("m", "{}", Map.of("1/b", ByteBuffer.allocate(1), "1/a", ByteBuffer.allocate(1)));
        client.unload("m", true);
        client.unload("m");

        assertThat(client.isReady("m", 1)).isFalse();
        assertThat(client.controls())
                .containsExactly("load m", "load m with {} and [1/a, 1/b]", "unload m with dependents", "unload m");
        assertThatThrownBy(() -> client.isReady("absent", 1))
                .hasMessageContaining("Request for unknown model: 'absent'");
    }

    private static void assertCancelled(CompletableFuture<ModelResponse> stage) {
        assertThat(stage).isCompletedExceptionally();
        assertThatThrownBy(stage::get)
                .isInstanceOf(ExecutionException.class)
                .cause()
                .isInstanceOfSatisfying(
                        BackendException.class,
                        error -> assertThat(error.code()).isEqualTo(ErrorCode.CANCELLED));
    }

    private static Map<String, Tensor> values() {
        return Map.of("OUT", Tensor.ofStrings(Shape.of(1), List.of("a")));
    }
}
