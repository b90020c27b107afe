package dev.nereid.server.lifecycle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.FatalErrorHandler;
import dev.nereid.api.InferRequest;
import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InputTensor;
import dev.nereid.api.ModelRef;
import dev.nereid.api.ResponseObserver;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.plugin.BackendLease;
import dev.nereid.plugin.BackendRegistry;
import dev.nereid.plugin.PluginEnvironment;
import dev.nereid.plugin.PluginJar;
import dev.nereid.plugin.UnloadWatch;
import dev.nereid.plugin.jar.SpiVersion;
import dev.nereid.repository.ModelDirectory;
import dev.nereid.repository.files.FileCopies;
import dev.nereid.scheduler.SchedulerEnvironment;
import dev.nereid.scheduler.Supervision;
import dev.nereid.scheduler.time.TimerThread;
import dev.nereid.server.instance.InstanceStarts;
import dev.nereid.server.memory.TensorPool;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.server.response.ResponseHolders;
import dev.nereid.server.warmup.RunningWarmups;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.testkit.FakeModelClient;
import dev.nereid.testkit.LeakCheckingMemory;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A model that is closed leaves nothing of its plugin, while the memory, timer and loader of the server go on. */
final class ModelUnloadTest {
    /**
     * Responds by the way that the value says: 0 throws, 1 puts its input, 2 responds by an action of its sender, 3 on the
     * executor, 4 also throws there.
     */
    private static final String BACKEND = """
            package ways;

            import dev.nereid.spi.*;
            import java.lang.foreign.ValueLayout;
            import java.util.Optional;

            public final class Ways implements BackendProvider {
                public Ways() { REGISTRATION }

                static final class Refusal extends RuntimeException {
                    Refusal() { super("zero"); }
                }

                public String name() { return "ways"; }

                public Backend create(BackendContext context) {
                    return new Backend() {
                        public Optional<ModelCompletion> complete(ModelContext model) {
                            model.executor().execute(() -> completed = Thread.currentThread().getName());
                            return Optional.empty();
                        }

                        public Model load(ModelContext model) {
                            if (model.parameters().value("refuse").isPresent()) {
                                throw new Refusal();
                            }
                            return new Model() {
                                public ModelInstance newInstance(InstanceContext place) { return batch -> execute(batch, model); }

                                public Optional<BackendTraits.Execution> execution() {
                                    return Optional.of(BackendTraits.Execution.valueOf(
                                            model.parameters().required("execution")));
                                }
                            };
                        }
                    };
                }

                static volatile String completed;

                static void execute(Batch batch, ModelContext model) {
                    for (InferenceRequest request : batch.requests()) {
                        Tensor in = request.requireInput("INPUT0");
                        int way = (int) in.data().get(ValueLayout.JAVA_FLOAT_UNALIGNED, 0);
                        request.onCancel(() -> { });
                        if (way == 0) {
                            throw new Refusal();
                        } else if (way == 1) {
                            request.response().put("OUTPUT0", in, () -> { });
                        } else if (way >= 3) {
                            DeferredExecution execution = batch.defer();
                            model.executor().execute(() -> {
                                Thread thread = Thread.currentThread();
                                if (thread.getContextClassLoader() != Ways.class.getClassLoader()
                                        || !thread.getName().startsWith("executor/a/1/")) {
                                    execution.fail(new BackendException(ErrorCode.INTERNAL, thread.toString()));
                                    return;
                                }
                                request.response().put("OUTPUT0", in, () -> { });
                                execution.complete();
                                if (way == 4) {
                                    throw new Refusal();
                                }
                            });
                        } else {
                            ResponseSender sender = request.sender();
                            sender.onReady(() -> act(sender));
                        }
                    }
                }

                static void act(ResponseSender sender) {
                    try {
                        InferenceResponse response = sender.newResponse();
                        response.allocate("OUTPUT0", DataType.FP32, Shape.of(1, 1));
                        sender.complete(response);
                    } catch (BackendException e) {
                        sender.fail(e);
                    }
                }
            }
            """;

    private static final String CONFIG = """
            backend: "ways"
            max_batch_size: 4
            input { name: "INPUT0" data_type: TYPE_FP32 dims: [ 1 ] }
            output { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 1 ] }
            instance_group { count: 2 kind: KIND_CPU }
            dynamic_batching { default_queue_policy { default_timeout_microseconds: 3600000000 } }
            """;

    private final TimerThread timer = new TimerThread(System::nanoTime, failure -> {});
    private final SchedulerEnvironment environment =
            new SchedulerEnvironment(new TensorPool(1 << 24, 1 << 20, true), System::nanoTime, timer);

    @TempDir
    private Path directory;

    private BackendRegistry backends;

    @BeforeEach
    void openRegistry() {
        PluginJar.of(BACKEND.replace("REGISTRATION", UnloadWatch.REGISTRATION))
                .provider("ways.Ways")
                .write(directory.resolve("plugins/ways.jar"));
        backends = BackendRegistry.open(
                List.of(directory.resolve("plugins")),
                List.of(),
                new PluginEnvironment(new SpiVersion(1, 0), Map.of(), directory.resolve("cache"), 2, Map.of()));
    }

    @AfterEach
    void close() {
        backends.close();
        timer.close();
    }

    @Tag("slow")
    @ParameterizedTest
    @ValueSource(strings = {"LONG", "SHORT"})
    void dropsThePluginWithItsLastModel(String execution) throws Exception {
        VersionLoader loader = loader();
        try (UnloadWatch watch = new UnloadWatch()) {
            List<ServedModel> models = new ArrayList<>();
            models.add(loader.load(prepare("a", execution, ""), 1));
            models.add(loader.load(prepare("b", execution, "model_transaction_policy { decoupled: true }\n"), 1));
            for (int i = 0; i < 10; i++) {
                exerciseOnce(models.getFirst(), 0);
                exerciseOnce(models.getFirst(), 1);
                exerciseOnce(models.getFirst(), 3);
                exerciseOnce(models.getFirst(), 4);
                exerciseOnce(models.getLast(), 0);
                exerciseOnce(models.getLast(), 2);
            }

            assertThat(models.getFirst().executor())
                    .hasValueSatisfying(use -> assertThat(use.threads()).isPositive());
            models.removeFirst().close();
            exerciseOnce(models.getFirst(), 2);
            assertThat(watch.loaded()).isEqualTo(1);
            models.removeFirst().close();

            assertThat(watch.awaitUnloaded()).isTrue();
        }
    }

    @Test
    void dropsThePluginAfterALoadThatFailed() throws Exception {
        VersionLoader loader = loader();
        try (UnloadWatch watch = new UnloadWatch()) {
            PreparedModel refused =
                    prepare("a", "LONG", "parameters { key: \"refuse\" value: { string_value: \"1\" } }\n");
            assertThatThrownBy(() -> loader.load(refused, 1))
                    .isInstanceOf(BackendException.class)
                    .hasMessageContaining("Refusal: zero");

            assertThat(watch.awaitUnloaded()).isTrue();
        }
    }

    /** The completion has given a task to its executor. */
    @Test
    void dropsThePluginAfterACompletionWithoutALoad() throws Exception {
        PreparedModel prepared = prepare("a", "LONG", "");
        try (UnloadWatch watch = new UnloadWatch()) {
            try (BackendLease lease = backends.acquire("ways")) {
                assertThat(loader().complete(prepared, 1, lease).getName()).isEqualTo("a");
                for (Thread thread : Thread.getAllStackTraces().keySet()) {
                    if (thread.getName().startsWith("executor/a/")) {
                        assertThat(thread.join(Duration.ofSeconds(60)))
                                .as("ends")
                                .isTrue();
                    }
                }
            }

            assertThat(watch.awaitUnloaded()).isTrue();
        }
    }

    /** A generation whose listener throws at its close would otherwise drain for good. */
    @Test
    void endsTheDrainOfAGenerationWhoseListenerThrows() throws Exception {
        LiveGenerations live = new LiveGenerations(FatalErrorHandler.NONE, () -> {
            throw new IllegalStateException("no listener");
        });
        Generation generation = live.begin("a", loader().load(prepare("a", "LONG", ""), 1), 0, Generation.Hooks.NONE);

        assertThatThrownBy(() -> live.discard(generation)).hasMessage("no listener");

        assertThat(live.all()).isEmpty();
        assertThat(live.awaitAllClosed(0)).isTrue();
    }

    private VersionLoader loader() {
        return new VersionLoader(
                backends,
                new FileCopies(directory.resolve("cache")),
                ServerOptions.of(Path.of("models")).models(),
                environment,
                new RunningWarmups(),
                new ModelLoadWatch(Supervision.NONE, System::nanoTime),
                new MeterRegistry(InstantSource.system()),
                _ -> new FakeModelClient(new LeakCheckingMemory()),
                new ResponseHolders(),
                new InstanceStarts((stage, _) -> stage.isDone()));
    }

    private PreparedModel prepare(String name, String execution, String more) throws IOException {
        Path model = directory.resolve("models").resolve(name);
        Files.createDirectories(model.resolve("1"));
        Files.writeString(
                model.resolve("config.pbtxt"),
                CONFIG + "parameters { key: \"execution\" value: { string_value: \"" + execution + "\" } }\n" + more);
        return new ModelPreparation(
                        backends,
                        ServerOptions.of(Path.of("models")).models(),
                        false,
                        new ModelLoadWatch(Supervision.NONE, System::nanoTime))
                .prepare(new ModelDirectory(directory.resolve("models"), name));
    }

    private void exerciseOnce(ServedModel model, float way) {
        TensorBuffer memory = environment.memory().allocate(Float.BYTES);
        memory.segment().set(java.lang.foreign.ValueLayout.JAVA_FLOAT, 0, way);
        InputTensor input =
                InputTensor.of("INPUT0", DataType.FP32.name(), new long[] {1, 1}, memory.segment(), MemoryPlace.HOST);
        Outcome outcome = new Outcome();
        InferRequest request = InferRequest.of(ModelRef.latest("any"), List.of(input), memory::close);
        model.submit(model.check(request, System.nanoTime()), outcome);
        assertThat(outcome.text()).matches(way == 0 ? ".*zero.*" : "response");
    }

    /** The outcome of one request. */
    private static final class Outcome implements ResponseObserver {
        private final CompletableFuture<String> text = new CompletableFuture<>();

        String text() {
            try {
                return text.get(30, TimeUnit.SECONDS);
            } catch (InterruptedException | ExecutionException | TimeoutException e) {
                throw new AssertionError("no response", e);
            }
        }

        @Override
        public void onResponse(InferResponse received) {
            received.close();
            text.complete("response");
        }

        @Override
        public void onCompleted() {
            text.complete("no response");
        }

        @Override
        public void onError(InferenceException error) {
            text.complete(error.publicMessage());
        }
    }
}
