package dev.nereid.walkthrough;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeBackendContext;
import dev.nereid.testkit.FakeBatch;
import dev.nereid.testkit.FakeInstanceContext;
import dev.nereid.testkit.FakeModelClient;
import dev.nereid.testkit.FakeModelContext;
import dev.nereid.testkit.FakeModelRequest;
import dev.nereid.testkit.FakeRequest;
import dev.nereid.testkit.FakeSender;
import dev.nereid.testkit.LeakCheckingMemory;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;

/** Tests backends that send requests to other models. */
final class ModelRequestsTest {
    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    private final FakeModelClient models = new FakeModelClient(memory);
    private final ModelSettings settings = ModelSettings.builder("describe", 1)
            .input(TensorSpec.of("IMAGE", DataType.BYTES, Shape.of(1)))
            .output(TensorSpec.of("TEXT", DataType.BYTES, Shape.of(1)))
            .build();

    @Test
    void respondsWithTheOutputOfTheLastModel() throws Exception {
        FakeRequest request = request();
        try (FakeBatch batch = start(request)) {
            FakeModelRequest labels = models.sent().getFirst();
            assertThat(labels.model()).isEqualTo("labels");
            assertThat(labels.outputs()).containsExactly("LABEL");
            assertThat(labels.cause()).contains(request);

            labels.respond(Map.of("LABEL", text("cat")));
            FakeModelRequest phrase = models.sent().getLast();
            assertThat(phrase.inputs().get("LABEL").strings()).containsExactly("cat");
            phrase.respond(Map.of("TEXT", text("a cat")));

            assertThat(batch.awaitEnd(Duration.ZERO)).isTrue();
            assertThat(request.failure()).isEmpty();
            assertThat(request.outputs().get("TEXT").strings()).containsExactly("a cat");
            assertThat(memory.buffersInUse()).isEqualTo(1); // the output alone
        }
    }

    @Test
    void failsWithTheErrorOfAModel() throws Exception {
        FakeRequest request = request();
        try (FakeBatch batch = start(request)) {
            BackendException error = new BackendException(ErrorCode.UNAVAILABLE, "no device");
            models.sent().getFirst().respond(Map.of("LABEL", text("cat")));
            models.sent().getLast().fail(error);

            assertThat(batch.awaitEnd(Duration.ZERO)).isTrue();
            assertThat(request.failure()).contains(error);
        }
    }

    @Test
    void failsIfAnOutputIsMissing() throws Exception {
        FakeRequest request = request();
        try (FakeBatch batch = start(request)) {
            models.sent().getFirst().respond(Map.of("OTHER", text("cat")));

            assertThat(batch.awaitEnd(Duration.ZERO)).isTrue();
            assertThat(request.failure().orElseThrow())
                    .hasMessage("output 'LABEL': not in the response (it has: [OTHER])");
        }
    }

    @Test
    void cancellationReachesTheModelThatIsWaitedFor() throws Exception {
        FakeRequest request = request();
        try (FakeBatch batch = start(request)) {
            models.sent().getFirst().respond(Map.of("LABEL", text("cat")));

            request.cancel();

            assertThat(models.sent().getLast().isComplete()).isTrue();
            assertThat(batch.awaitEnd(Duration.ZERO)).isTrue();
            assertThat(request.failure().orElseThrow().code()).isEqualTo(ErrorCode.CANCELLED);
        }
    }

    @Test
    void passesOnTheResponsesOfADecoupledModel() throws Exception {
        try (FakeSender sender = new FakeSender(memory)) {
            Narrate.start(
                    new FakeRequest(1, List.of("WORD"))
                            .with("PROMPT", text("go"))
                            .with(sender),
                    models);
            FakeModelRequest words = models.sent().getFirst();

            words.respond(Map.of("WORD", text("once")));
            words.respond(Map.of("ELSE", text("upon")));
            words.complete();

            assertThat(sender.responses())
                    .extracting(outputs -> outputs.get("WORD").strings())
                    .containsExactly(List.of("once"));
            assertThat(sender.failedResponses()).hasSize(1);
            assertThat(sender.hasEnded()).isTrue();
        }
    }

    @Test
    void passesOnFlowAndCancellation() throws Exception {
        try (FakeSender sender = new FakeSender(memory)) {
            FakeRequest request = new FakeRequest(1, List.of("WORD"))
                    .with("PROMPT", text("go"))
                    .with(sender);
            Narrate.start(request, models);
            FakeModelRequest words = models.sent().getFirst();

            assertThat(words.isReady()).isTrue();
            List<String> actions = new ArrayList<>();
            words.onReady(() -> actions.add("ready"));
            assertThat(actions).containsExactly("ready");

            request.cancel();
            assertThat(sender.failure().orElseThrow().code()).isEqualTo(ErrorCode.CANCELLED);
        }
    }

    private FakeBatch start(FakeRequest request) {
        FakeBatch batch = new FakeBatch(settings, memory, request);
        Path directory = Path.of("m");
        new Describe()
                .create(new FakeBackendContext(Map.of(), directory, 1))
                .load(new FakeModelContext(settings, directory).with(models))
                .newInstance(new FakeInstanceContext("describe_0_0"))
                .execute(batch);
        return batch;
    }

    private FakeRequest request() {
        return new FakeRequest(1, List.of("TEXT")).with("IMAGE", text("pixels")).withResponse(memory);
    }

    private static Tensor text(String text) {
        return Tensor.ofStrings(Shape.of(1), List.of(text));
    }
}
