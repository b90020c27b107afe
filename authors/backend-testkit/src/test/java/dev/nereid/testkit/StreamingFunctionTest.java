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
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.ModelCompletion;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ResponseSender;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.spi.function.StreamingFunction;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.function.BiConsumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;

/** Tests the backend around a streaming function: every sender is ended, and each request gets its responses. */
final class StreamingFunctionTest {
    private static final Path DIRECTORY = Path.of("m");
    private static final TensorSpec OUT = TensorSpec.of("OUT", DataType.INT32, Shape.of(1));

    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    private final FakeSender one = new FakeSender(memory);
    private final FakeSender two = new FakeSender(memory);

    private final ModelSettings settings =
            ModelSettings.builder("m", 1).decoupled(true).output(OUT).build();
    private final FakeModelContext context = new FakeModelContext(settings, DIRECTORY);

    @AfterEach
    void closeResponses() {
        one.close();
        two.close();
    }

    @Test
    void endsWhatTheFunctionLeavesOpen() {
        execute((request, sender) -> {
            send(sender, 1);
            send(sender, 2);
        });

        assertThat(values(one)).containsExactly(1, 2);
        assertThat(values(two)).containsExactly(1, 2);
        assertThat(List.of(one.hasEnded(), two.hasEnded())).containsOnly(true);
        assertThat(one.failure()).isEmpty();
    }

    @Test
    void leavesWhatTheFunctionEnded() {
        execute((request, sender) -> {
            if (request.id().equals("1")) {
                sender.complete(response(sender, 7));
            } else {
                sender.fail(new BackendException(ErrorCode.UNAVAILABLE, "no database"));
            }
        });

        assertThat(values(one)).containsExactly(7);
        assertThat(one.failure()).isEmpty();
        assertThat(two.failure().orElseThrow()).hasMessage("no database");
    }

    @Test
    void failsTheRequestOfAFunctionThatThrows() {
        BackendException error = new BackendException(ErrorCode.NOT_FOUND, "no such text");
        execute((request, sender) -> {
            send(sender, 1);
            if (request.id().equals("1")) {
                throw error;
            }
        });

        assertThat(values(one)).containsExactly(1);
        assertThat(one.failure()).contains(error);
        assertThat(values(two)).containsExactly(1);
        assertThat(two.failure()).isEmpty();
        assertThat(context.logger().lines()).isEmpty();
    }

    @Test
    void reportsAndLogsABug() {
        execute((request, sender) -> {
            throw new IllegalArgumentException("a bug");
        });

        BackendException failure = one.failure().orElseThrow();
        assertThat(failure.code()).isEqualTo(ErrorCode.INTERNAL);
        assertThat(failure).hasMessage("model 'm': backend 'count' failed: java.lang.IllegalArgumentException: a bug");
        assertThat(context.logger().lines()).containsExactly("ERROR backend failed", "ERROR backend failed");
    }

    @Test
    void endsTheSenderOfAFunctionThatThrowsACheckedException() {
        execute((request, sender) -> throwUnchecked(new IOException("disk")));

        assertThat(one.failure().orElseThrow())
                .hasMessage("model 'm': backend 'count' failed: java.io.IOException: disk");
        assertThat(two.hasEnded()).isTrue();
    }

    /** Throws as code of another language may. */
    @SuppressWarnings("unchecked")
    private static <E extends Throwable> void throwUnchecked(Throwable thrown) throws E {
        throw (E) thrown;
    }

    @Test
    void endsTheSenderOfAFunctionThatThrowsAnError() {
        StackOverflowError fatal = new StackOverflowError();

        assertThatThrownBy(() -> execute((request, sender) -> {
                    throw fatal;
                }))
                .isSameAs(fatal);

        assertThat(one.hasEnded()).isTrue();
        assertThat(one.failure().orElseThrow().code()).isEqualTo(ErrorCode.INTERNAL);
        two.complete(); // the server does so, since the function did not get the request
    }

    @Test
    void completesTheTransactionPolicy() {
        ModelSettings empty = ModelSettings.builder("m", 1).build();

        assertThat(backend((request, sender) -> {}).complete(new FakeModelContext(empty, DIRECTORY)))
                .contains(ModelCompletion.EMPTY.withOutputs(List.of(OUT)).withDecoupled(true));
    }

    @Test
    void completesNothingWithoutTensors() {
        StreamingFunction function = new StreamingFunction() {
            @Override
            public String name() {
                return "silent";
            }

            @Override
            public void apply(InferenceRequest request, ResponseSender sender) {
                throw new AssertionError("not called");
            }
        };
        Backend backend = function.create(new FakeBackendContext(Map.of(), DIRECTORY, 1));
        ModelSettings empty = ModelSettings.builder("m", 1).build();
        ModelSettings configured = ModelSettings.builder("m", 1).output(OUT).build();

        assertThat(backend.complete(new FakeModelContext(empty, DIRECTORY))).isEmpty();
        assertThat(backend.complete(new FakeModelContext(configured, DIRECTORY)))
                .contains(ModelCompletion.EMPTY.withDecoupled(true));
    }

    @Test
    void refusesAModelThatIsNotDecoupled() {
        ModelSettings single = ModelSettings.builder("m", 1).output(OUT).build();

        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> backend((request, sender) -> {}).load(new FakeModelContext(single, DIRECTORY)))
                .withMessage("model 'm': backend 'count' gives any number of responses to each request (expected:"
                        + " model_transaction_policy { decoupled: true })")
                .satisfies(e -> assertThat(e.code()).isEqualTo(ErrorCode.UNSUPPORTED));
    }

    @Test
    void hasParallelInstances() {
        assertThat(backend((request, sender) -> {}).traits()).isEqualTo(BackendTraits.DEFAULT.withParallelInstances());
    }

    private void execute(BiConsumer<InferenceRequest, ResponseSender> function) {
        try (FakeBatch batch = new FakeBatch(
                settings,
                memory,
                new FakeRequest(1, List.of("OUT")).withId("1").with(one),
                new FakeRequest(1, List.of("OUT")).withId("2").with(two))) {
            backend(function)
                    .load(context)
                    .newInstance(new FakeInstanceContext("m_0_0"))
                    .execute(batch);
        }
    }

    private static Backend backend(BiConsumer<InferenceRequest, ResponseSender> function) {
        StreamingFunction provider = new StreamingFunction() {
            @Override
            public String name() {
                return "count";
            }

            @Override
            public ModelCompletion completion() {
                return ModelCompletion.EMPTY.withOutputs(List.of(OUT));
            }

            @Override
            public void apply(InferenceRequest request, ResponseSender sender) {
                function.accept(request, sender);
            }
        };
        return provider.create(new FakeBackendContext(Map.of(), DIRECTORY, 1));
    }

    private static InferenceResponse response(ResponseSender sender, int value) {
        InferenceResponse response = sender.newResponse();
        response.putInts("OUT", Shape.of(1), value);
        return response;
    }

    private static void send(ResponseSender sender, int value) {
        sender.send(response(sender, value));
    }

    private static List<Integer> values(FakeSender sender) {
        return sender.responses().stream()
                .map(outputs -> outputs.get("OUT").ints()[0])
                .toList();
    }
}
