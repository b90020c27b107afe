package dev.nereid.server;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.server.options.ServerOptions;
import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.Batch;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelRequest;
import dev.nereid.spi.ModelResponse;
import dev.nereid.spi.ModelResponseObserver;
import dev.nereid.spi.ResponseSender;
import dev.nereid.spi.Shape;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Models that call themselves on behalf of requests with senders, as a backend does that runs a program elsewhere. */
@Timeout(60)
final class DetachedCallsTest {
    @TempDir
    private Path directory;

    private TestModels models;

    @BeforeEach
    void setUp() throws Exception {
        Files.createDirectories(directory.resolve("plugins"));
        models = new TestModels(Files.createDirectories(directory.resolve("models")));
    }

    @ParameterizedTest
    @ValueSource(strings = {"batch", "request"})
    void refusesToWaitForTheOnlyInstance(String cause) throws Exception {
        write("one", 1, cause);
        write("two", 2, cause);
        try (NereidServer server = start()) {
            assertThat(RecordingObserver.to(server, "one", 0).response().values())
                    .containsExactly(0f);
            assertRefused(RecordingObserver.to(server, "one", 1), "one -> one");
            assertThat(RecordingObserver.to(server, "two", 1).response().values())
                    .containsExactly(0f);
            assertRefused(RecordingObserver.to(server, "two", 2), "two -> two -> two");
        }
    }

    /** The program of a model goes on after the return, and holds no instance. */
    @Test
    void waitsForTheOnlyInstanceAfterTheReturn() throws Exception {
        write("one", 1, "later");
        try (NereidServer server = start()) {
            assertThat(RecordingObserver.to(server, "one", 20).response().values())
                    .containsExactly(0f);
        }
    }

    private static void assertRefused(RecordingObserver observer, String path) throws Exception {
        assertThat(observer.error().code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
        assertThat(observer.error().publicMessage()).contains("would wait for itself: " + path + " (expected:");
    }

    private NereidServer start() throws InterruptedException {
        return NereidServer.start(ServerOptions.of(models.root())
                .withPlugins(directory.resolve("plugins"))
                .with(o -> o.providers = List.of(new Calling())));
    }

    private void write(String model, int instances, String cause) {
        models.model(
                model,
                "backend: \"calling\"\nmax_batch_size: 8\n" + TestModels.TENSORS + "instance_group { count: "
                        + instances + " kind: KIND_CPU }\n" + TestModels.parameter("cause", cause));
    }

    private static final class Calling implements BackendProvider, Backend {
        @Override
        public String name() {
            return "calling";
        }

        @Override
        public Backend create(BackendContext context) {
            return this;
        }

        @Override
        public BackendTraits traits() {
            return BackendTraits.DEFAULT.withExecution(BackendTraits.Execution.LONG);
        }

        @Override
        public Model load(ModelContext model) {
            return _ -> new CallingInstance(model, model.parameters().required("cause"));
        }
    }

    /** Calls the model as often as the input says, and responds with what that responds. */
    private record CallingInstance(ModelContext model, String cause) implements ModelInstance {
        @Override
        public void execute(Batch batch) {
            InferenceRequest request = batch.requests().getFirst();
            ResponseSender sender = request.sender();
            float depth = request.requireInput("INPUT0").floats()[0];
            if (depth == 0) {
                respond(sender, 0);
                return;
            }
            if (cause.equals("later")) {
                model.executor().execute(() -> callLater(depth - 1, sender, call -> call.onBehalfOf(request)));
                return;
            }
            try {
                call(
                                depth - 1,
                                sender,
                                call -> cause.equals("batch") ? call.onBehalfOf(batch) : call.onBehalfOf(request))
                        .get(); // as the thread of an instance waits while the program of its model executes
            } catch (ExecutionException | InterruptedException e) {
                throw new IllegalStateException(e);
            }
        }

        private void callLater(float depth, ResponseSender sender, UnaryOperator<ModelRequest> caused) {
            CompletableFuture<Void> _ = call(depth, sender, caused);
        }

        private CompletableFuture<Void> call(float depth, ResponseSender sender, UnaryOperator<ModelRequest> caused) {
            ModelRequest call = caused.apply(
                    model.models().request(model.settings().name()).input("INPUT0", Shape.of(1, 1), depth));
            CompletableFuture<Void> ended = new CompletableFuture<>();
            call.send(new ModelResponseObserver() {
                @Override
                public void onResponse(ModelResponse response) {
                    try (response) {
                        respond(sender, response.requireOutput("OUTPUT0").floats()[0]);
                    }
                }

                @Override
                public void onCompleted() {
                    ended.complete(null);
                }

                @Override
                public void onError(BackendException error) {
                    sender.fail(error);
                    ended.complete(null);
                }

                @Override
                public void onRefused(BackendException error) {
                    if (cause.equals("later")) { // the execution has not returned yet
                        model.executor().execute(() -> callLater(depth, sender, caused));
                    } else {
                        onError(error);
                    }
                }
            });
            return ended;
        }

        private static void respond(ResponseSender sender, float value) {
            InferenceResponse response = sender.newResponse();
            response.putFloats("OUTPUT0", Shape.of(1, 1), value);
            sender.complete(response);
        }
    }
}
