package dev.nereid.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.spi.function.AsyncTensorFunction;
import java.nio.file.Path;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BiConsumer;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;

/** Tests the backend around an asynchronous function: every execution is finished, and each request gets its outcome. */
final class AsyncTensorFunctionTest {
    private static final Duration TIMEOUT = Duration.ofSeconds(30);
    private static final Path DIRECTORY = Path.of("m");

    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    @AutoClose
    private final ExecutorService threads = Executors.newFixedThreadPool(2);

    private final ModelSettings settings = ModelSettings.builder("m", 1)
            .maxBatchSize(8)
            .input(TensorSpec.of("IN", DataType.BYTES, Shape.of(1)))
            .output(TensorSpec.of("OUT", DataType.BYTES, Shape.of(1)))
            .build();
    private final FakeModelContext context = new FakeModelContext(settings, DIRECTORY);
    private final Map<String, CompletableFuture<String>> stages = new LinkedHashMap<>();

    @Test
    void respondsToRequestsThatAreCompleteAtOnce() throws Exception {
        FakeRequest one = request("a");
        FakeRequest two = request("b");
        try (FakeBatch batch = new FakeBatch(settings, memory, one, two)) {
            execute(batch, (request, model) -> {
                respond(request, "done");
                return CompletableFuture.completedStage(null);
            });

            assertThat(batch.awaitEnd(Duration.ZERO)).isTrue();
            assertThat(outcome(one)).isEqualTo("done");
            assertThat(outcome(two)).isEqualTo("done");
        }
    }

    @Test
    void finishesWithTheLastOfABatchOnOtherThreads() throws Exception {
        FakeRequest one = request("a");
        FakeRequest two = request("b");
        FakeRequest three = request("c");
        try (FakeBatch batch = new FakeBatch(settings, memory, one, two, three)) {
            execute(batch, this::later);
            assertThat(batch.isDeferred()).isTrue();

            threads.execute(() -> stages.get("c").complete("3"));
            threads.execute(() -> stages.get("a").complete("1"));
            assertThat(stages.get("a").get()).isEqualTo("1");
            assertThat(batch.awaitEnd(Duration.ofMillis(20))).isFalse();
            threads.execute(() -> stages.get("b").complete("2"));

            assertThat(batch.awaitEnd(TIMEOUT)).isTrue();
            assertThat(List.of(outcome(one), outcome(two), outcome(three))).containsExactly("1", "2", "3");
        }
    }

    @Test
    void failsOneRequestAndRespondsToTheOthers() throws Exception {
        FakeRequest one = request("a");
        FakeRequest two = request("b");
        try (FakeBatch batch = new FakeBatch(settings, memory, one, two)) {
            execute(batch, this::later);
            BackendException error = new BackendException(ErrorCode.UNAVAILABLE, "no database");
            stages.get("a").completeExceptionally(new CompletionException(error));
            stages.get("b").complete("2");

            assertThat(batch.awaitEnd(Duration.ZERO)).isTrue();
            assertThat(one.failure()).contains(error);
            assertThat(outcome(two)).isEqualTo("2");
            assertThat(context.logger().lines()).isEmpty();
        }
    }

    @Test
    void reportsAndLogsOtherExceptionsAndErrorsOfAStage() throws Exception {
        for (Throwable bug : List.of(new IllegalStateException("a bug"), new AssertionError("a bug"))) {
            FakeRequest request = request("a");
            try (FakeBatch batch = new FakeBatch(settings, memory, request)) {
                execute(batch, this::later);
                stages.get("a").completeExceptionally(bug);

                assertThat(batch.awaitEnd(Duration.ZERO)).isTrue();
                BackendException failure = request.failure().orElseThrow();
                assertThat(failure.code()).isEqualTo(ErrorCode.INTERNAL);
                assertThat(failure)
                        .hasMessage("model 'm': backend 'later' failed: " + bug)
                        .hasCause(bug);
            }
        }
        assertThat(context.logger().lines()).containsExactly("ERROR backend failed", "ERROR backend failed");
    }

    @Test
    void failsTheRequestWhoseStartThrows() throws Exception {
        FakeRequest one = request("a");
        FakeRequest two = request("b");
        FakeRequest three = request("c");
        try (FakeBatch batch = new FakeBatch(settings, memory, one, two, three)) {
            execute(batch, (request, model) -> switch (text(request)) {
                case "a" -> throw new BackendException(ErrorCode.INVALID_ARGUMENT, "not so");
                case "b" -> throw new IllegalArgumentException("a bug");
                default -> later(request, model);
            });
            stages.get("c").complete("3");

            assertThat(batch.awaitEnd(Duration.ZERO)).isTrue();
            assertThat(one.failure().orElseThrow()).hasMessage("not so");
            assertThat(two.failure().orElseThrow().code()).isEqualTo(ErrorCode.INTERNAL);
            assertThat(outcome(three)).isEqualTo("3");
        }
    }

    @Test
    void failsTheRequestWithoutAStage() throws Exception {
        FakeRequest request = request("a");
        try (FakeBatch batch = new FakeBatch(settings, memory, request)) {
            execute(batch, (ignored, model) -> null);

            assertThat(batch.awaitEnd(Duration.ZERO)).isTrue();
            assertThat(request.failure().orElseThrow())
                    .hasMessage("model 'm': backend 'later' failed:"
                            + " java.lang.NullPointerException: apply returned null");
        }
    }

    @Test
    void finishesTheExecutionWhenAStartThrowsAnError() throws Exception {
        FakeRequest one = request("a");
        FakeRequest two = request("b");
        try (FakeBatch batch = new FakeBatch(settings, memory, one, two)) {
            StackOverflowError fatal = new StackOverflowError();

            assertThatThrownBy(() -> execute(batch, (request, model) -> {
                        if (text(request).equals("a")) {
                            throw fatal;
                        }
                        return later(request, model);
                    }))
                    .isSameAs(fatal);

            assertThat(batch.awaitEnd(Duration.ZERO)).isFalse();
            stages.get("b").complete("2");
            assertThat(batch.awaitEnd(Duration.ZERO)).isTrue();
            assertThat(outcome(two)).isEqualTo("2");
        }
    }

    @Test
    void finishesOnceForAStageThatCompletesTwiceOrThrows() throws Exception {
        AtomicReference<BiConsumer<Object, Throwable>> action = new AtomicReference<>();
        CompletableFuture<Object> broken = new CompletableFuture<>() {
            @Override
            @SuppressWarnings("unchecked")
            public CompletableFuture<Object> whenComplete(BiConsumer<? super Object, ? super Throwable> given) {
                action.set((BiConsumer<Object, Throwable>) given);
                given.accept("", null);
                throw new IllegalStateException("a broken stage");
            }
        };
        FakeRequest one = request("a");
        FakeRequest two = request("b");
        try (FakeBatch batch = new FakeBatch(settings, memory, one, two)) {
            execute(batch, (request, model) -> text(request).equals("a") ? broken : later(request, model));
            action.get().accept("", null);

            assertThat(batch.awaitEnd(Duration.ZERO)).isFalse();
            stages.get("b").complete("2");
            assertThat(batch.awaitEnd(Duration.ZERO)).isTrue();
        }
    }

    @Test
    void aCancelledStageOfACancelledRequestIsNoBug() throws Exception {
        FakeRequest cancelled = request("a");
        FakeRequest other = request("b");
        try (FakeBatch batch = new FakeBatch(settings, memory, cancelled, other)) {
            execute(batch, (request, model) -> {
                CompletionStage<?> stage = later(request, model);
                var _ = request.onCancel(() -> stages.get("a").cancel(false));
                return stage;
            });
            cancelled.cancel();
            stages.get("b").completeExceptionally(new CancellationException());

            assertThat(batch.awaitEnd(Duration.ZERO)).isTrue();
            assertThat(cancelled.failure().orElseThrow().code()).isEqualTo(ErrorCode.CANCELLED);
            assertThat(other.failure().orElseThrow().code()).isEqualTo(ErrorCode.INTERNAL);
            assertThat(context.logger().lines()).containsExactly("ERROR backend failed");
        }
    }

    @Test
    void hasTraitsOfItsOwn() {
        assertThat(backend(this::later).traits())
                .isEqualTo(BackendTraits.DEFAULT.withParallelInstances().withMaxDeferred(64));
    }

    @Test
    void refusesADecoupledModel() {
        ModelSettings decoupled = ModelSettings.builder("m", 1).decoupled(true).build();

        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> backend(this::later).load(new FakeModelContext(decoupled, DIRECTORY)))
                .withMessage("model 'm': backend 'later' gives one response to each request, but the model"
                        + " configuration says decoupled");
    }

    /** Responds with the text of a stage, which is found by the text of the request. */
    private CompletionStage<?> later(InferenceRequest request, ModelContext model) {
        CompletableFuture<String> stage = new CompletableFuture<>();
        stages.put(text(request), stage);
        return stage.thenAccept(text -> respond(request, text));
    }

    private void execute(FakeBatch batch, Function function) {
        ModelInstance instance = backend(function).load(context).newInstance(new FakeInstanceContext("m_0_0"));
        instance.execute(batch);
    }

    private static Backend backend(Function function) {
        AsyncTensorFunction provider = new AsyncTensorFunction() {
            @Override
            public String name() {
                return "later";
            }

            @Override
            public CompletionStage<?> apply(InferenceRequest request, ModelContext model) {
                return function.apply(request, model);
            }
        };
        return provider.create(new FakeBackendContext(Map.of(), DIRECTORY, 1));
    }

    private FakeRequest request(String text) {
        return new FakeRequest(1, List.of("OUT"))
                .with("IN", Tensor.ofStrings(Shape.of(1, 1), List.of(text)))
                .withResponse(memory);
    }

    private static String text(InferenceRequest request) {
        return request.requireInput("IN").strings().getFirst();
    }

    private static void respond(InferenceRequest request, String text) {
        try {
            request.response().put("OUT", Tensor.ofStrings(Shape.of(1, 1), List.of(text)));
        } catch (BackendException e) {
            throw new CompletionException(e);
        }
    }

    private static String outcome(FakeRequest request) {
        assertThat(request.failure()).isEmpty();
        assertThat(request.isComplete()).isTrue();
        return request.outputs().get("OUT").strings().getFirst();
    }

    /** The method of an asynchronous function. */
    private interface Function {
        CompletionStage<?> apply(InferenceRequest request, ModelContext model);
    }
}
