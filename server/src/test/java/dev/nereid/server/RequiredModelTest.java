package dev.nereid.server;

import static dev.nereid.server.TestModels.parameter;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelCatalog.Readiness;
import dev.nereid.api.ModelControl;
import dev.nereid.api.ModelRef;
import dev.nereid.api.ModelStatus;
import dev.nereid.server.check.CheckReport;
import dev.nereid.server.check.RepositoryCheck;
import dev.nereid.server.options.ModelControlMode;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.Batch;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InstanceContext;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelCompletion;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelInstance;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Models that the plugins of other models call, as they declare during their loads. */
@Timeout(120)
final class RequiredModelTest {
    @TempDir
    private Path directory;

    private final Calling backend = new Calling();
    private TestModels models;

    @BeforeEach
    void setUp() throws IOException {
        Files.createDirectories(directory.resolve("plugins"));
        models = new TestModels(Files.createDirectories(directory.resolve("models")));
    }

    private void write(String model, String... more) {
        models.model(
                model,
                "backend: \"calling\"\nmax_batch_size: 8\n" + TestModels.TENSORS
                        + "instance_group { count: 1 kind: KIND_CPU }\n" + String.join("", more));
    }

    /** A backend that requires the models in the parameters "complete" and "load", those of a version in "load_1". */
    private static final class Calling implements BackendProvider, Backend {
        final List<String> events = new CopyOnWriteArrayList<>();
        final Set<String> unready = ConcurrentHashMap.newKeySet();
        final Map<String, InstanceContext> places = new ConcurrentHashMap<>();
        final Map<String, Integer> checks = new ConcurrentHashMap<>();

        /** The result of checks of instances that are ready. */
        volatile CompletionStage<Void> check = CompletableFuture.completedStage(null);

        volatile Consumer<ModelContext> inLoad = _ -> {};

        @Override
        public String name() {
            return "calling";
        }

        @Override
        public Backend create(BackendContext context) {
            return this;
        }

        private static void require(ModelContext context, String parameter) {
            String names = context.parameters().text(parameter).orElse("");
            for (String name : names.isEmpty() ? new String[0] : names.split(",", -1)) {
                context.requires(name);
            }
        }

        @Override
        public Optional<ModelCompletion> complete(ModelContext context) {
            require(context, "complete");
            return Optional.empty();
        }

        @Override
        public Model load(ModelContext context) {
            String name = context.settings().name();
            events.add("begin " + name);
            require(context, "load");
            require(context, "load_" + context.settings().version());
            inLoad.accept(context);
            events.add("load " + name + "/" + context.settings().version());
            return new Model() {
                @Override
                public ModelInstance newInstance(InstanceContext place) {
                    places.put(name, place);
                    return new CallingInstance(Calling.this, name);
                }

                @Override
                public void close() {
                    events.add("close " + name);
                }
            };
        }
    }

    private record CallingInstance(Calling backend, String model) implements ModelInstance {
        @Override
        public void execute(Batch batch) {
            batch.put("OUTPUT0", batch.gather("INPUT0"));
        }

        @Override
        public CompletionStage<Void> checkReady() {
            backend.checks.merge(model, 1, Integer::sum);
            return backend.unready.contains(model)
                    ? CompletableFuture.failedStage(new BackendException(ErrorCode.UNAVAILABLE, "not ready"))
                    : backend.check;
        }
    }

    private ServerOptions options(int threads, String... startup) {
        return ServerOptions.of(models.root())
                .withPlugins(directory.resolve("plugins"))
                .with(o -> {
                    o.providers = List.of(backend);
                    o.explicit(startup);
                    o.loadThreads = threads;
                });
    }

    private static void load(NereidServer server, String model) throws Exception {
        get(server.control()
                .load(new ModelControl.Load(model, Optional.empty(), Map.of()))
                .toCompletableFuture());
    }

    private static void unload(NereidServer server, String model, boolean withNeeded) throws Exception {
        get(server.control().unload(model, withNeeded).toCompletableFuture());
    }

    private static void get(CompletableFuture<?> stage) throws Exception {
        stage.get(30, TimeUnit.SECONDS);
    }

    private static boolean isReady(NereidServer server, String model) {
        try {
            return server.models().isReady(ModelRef.latest(model));
        } catch (InferenceException e) { // it is not loaded
            return false;
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"complete", "load"})
    void aRequiredModelServesBeforeTheLoadGoesOn(String where) throws Exception {
        write("caller", parameter(where, "needed"));
        write("needed");

        try (NereidServer server = NereidServer.start(options(1))) {
            load(server, "caller");
            assertThat(isReady(server, "caller")).isTrue();
            assertThat(isReady(server, "needed")).isTrue();
        }
        assertThat(backend.events).containsSubsequence("load needed/1", "load caller/1");
        assertThat(backend.events.subList(0, 4)).doesNotHaveDuplicates();
    }

    @Test
    void aRequiredModelServesAlsoWithoutCompletion() throws Exception {
        write("caller", parameter("load", "needed"));
        write("needed");

        try (NereidServer server = NereidServer.start(options(1).with(o -> o.autoComplete = false))) {
            load(server, "caller");
            assertThat(isReady(server, "needed")).isTrue();
        }
    }

    /** More loads than permits and pauses wait for each other. */
    @Test
    void chainsAreLoadedWithOnePermit() throws Exception {
        for (int i = 0; i < 20; i++) {
            write("m" + i, parameter("load", "m" + (i + 1)));
        }
        write("m20");

        try (NereidServer server = NereidServer.start(options(1, "*"))) {
            assertThat(server.failures()).isEmpty();
            assertThat(isReady(server, "m0")).isTrue();
        }
        assertThat(backend.events.stream().filter(event -> event.startsWith("load")))
                .startsWith("load m20/1")
                .endsWith("load m0/1")
                .hasSize(21);
    }

    @Test
    void circlesAreRefusedWithTheirPath() throws Exception {
        write("a", parameter("load", "b"));
        write("b", parameter("complete", "c"));
        write("c", parameter("load", "a"));
        write("self", parameter("complete", "self"), parameter("load", "self"));

        try (NereidServer server = NereidServer.start(options(1))) {
            assertThatThrownBy(() -> load(server, "a"))
                    .hasMessageContaining("model 'a' requires 'b', which has no loaded version")
                    .hasMessageContaining("circular dependency between models: c -> a -> b -> c");
            load(server, "self");
            assertThat(isReady(server, "self")).isTrue();

            write("c");
            load(server, "a");
            assertThat(isReady(server, "a")).isTrue();
        }
    }

    @Test
    void aModelIsUnloadedWithTheOnesThatItRequires() throws Exception {
        write("caller", parameter("load", "needed"));
        write("needed");

        try (NereidServer server = NereidServer.start(options(1))) {
            load(server, "caller");
            unload(server, "needed", false);
            assertThat(isReady(server, "caller")).isFalse();
            // Both take no requests any more; they are closed in any order.
            DemandFixture.await(() -> backend.events.containsAll(List.of("close caller", "close needed")));

            load(server, "needed");
            assertThat(isReady(server, "caller")).as("it waited").isTrue();
            unload(server, "caller", false);
            assertThat(isReady(server, "needed")).isTrue();
        }
    }

    @Test
    void aModelThatNothingRequiresAnyMoreIsUnloadedWithTheLast() throws Exception {
        write("caller", parameter("load", "needed"));
        write("other", parameter("load", "needed"));
        write("needed");

        try (NereidServer server = NereidServer.start(options(1, "caller", "other"))) {
            unload(server, "caller", true);
            assertThat(isReady(server, "needed")).isTrue();
            unload(server, "other", true);
            assertThat(isReady(server, "needed")).isFalse();
        }
    }

    @Test
    void aReplacedModelDoesNotReloadItsCallers() throws Exception {
        write("caller", parameter("load", "needed"));
        write("needed");

        try (NereidServer server = NereidServer.start(options(1, "caller"))) {
            backend.events.clear();
            write("needed", parameter("n", "1"));
            load(server, "needed");

            assertThat(backend.events).contains("load needed/1").doesNotContain("load caller/1", "close caller");
            unload(server, "needed", false);
            assertThat(isReady(server, "caller")).as("it requires the new one").isFalse();
        }
    }

    @Test
    void aModelIsReadyWhileTheOnesThatItRequiresAre() throws Exception {
        write("caller", parameter("load", "middle"));
        write("middle", parameter("load", "needed"));
        write("needed");

        try (NereidServer server = NereidServer.start(options(1, "caller"))) {
            assertThat(isReady(server, "caller")).isTrue();
            backend.unready.add("needed");
            assertThat(isReady(server, "caller")).isFalse();
            backend.unready.clear();
            assertThat(isReady(server, "caller")).isTrue();
        }
    }

    /** Instances that are about to go on are no reason to take the server out of service, also behind other models. */
    @Test
    void aRequiredModelThatIsUnavailableLeavesTheServerReady() throws Exception {
        write("caller", parameter("load", "middle"));
        write("middle", parameter("load", "needed"));
        write("needed");

        try (NereidServer server = NereidServer.start(options(1, "caller"))) {
            backend.places.get("needed").unavailable("process is started");
            assertThat(server.isReady()).isTrue();
            assertThat(server.models().index())
                    .filteredOn(status -> !status.name().equals("needed"))
                    .extracting(ModelStatus::reason)
                    .containsOnly("");
            assertThat(isReady(server, "caller")).isFalse();
            assertThat(server.models().checkReady(ModelRef.latest("caller")).toCompletableFuture())
                    .isCompletedWithValue(
                            Readiness.notReady(ErrorCode.UNAVAILABLE, "required models that are not ready: middle"));

            backend.places.get("needed").available();
            assertThat(isReady(server, "caller")).isTrue();
            backend.unready.add("needed");
            assertThat(isReady(server, "caller")).isFalse();
            assertThat(server.isReady()).isFalse();
            assertThat(server.models().index())
                    .filteredOn(status -> status.name().equals("middle"))
                    .extracting(ModelStatus::reason)
                    .containsExactly("required models that are not ready: needed");
        }
    }

    /** Each model of a chain asks the next one once. */
    @Test
    void checksOfAChainTakeTime() throws Exception {
        int last = 30;
        for (int i = 0; i < last; i++) {
            write("m" + i, parameter("load", "m" + (i + 1)));
        }
        write("m" + last);

        try (NereidServer server = NereidServer.start(options(1, "m0"))) {
            CompletableFuture<Void> check = new CompletableFuture<>();
            backend.check = check;
            CompletableFuture<Readiness> readiness =
                    server.models().checkReady(ModelRef.latest("m0")).toCompletableFuture();
            assertThat(isReady(server, "m0")).as("as before").isTrue();
            assertThat(readiness).isNotDone();

            check.complete(null);
            assertThat(readiness).isCompletedWithValue(Readiness.READY);
        }
    }

    /** A million paths lead to the last model, half of them through ensembles. */
    @Test
    void aCheckAsksEachModelOnceForEachThatRequiresIt() throws Exception {
        int last = 20;
        for (int i = 0; i < last; i++) {
            write("m" + i, parameter("load", "m" + (i + 1) + ",e" + (i + 1)));
            models.model("e" + i, ensemble("m" + (i + 1), "e" + (i + 1)));
        }
        write("m" + last);
        write("e" + last);

        try (NereidServer server = NereidServer.start(options(1, "m0"))) {
            backend.checks.clear();
            assertThat(server.models().checkReady(ModelRef.latest("m0")).toCompletableFuture())
                    .isCompletedWithValue(Readiness.READY);
            assertThat(server.models().isReady(ModelRef.latest("m0"))).isTrue();
            assertThat(backend.checks.get("m" + last)).isLessThan(10);

            backend.checks.clear();
            assertThat(server.isReady()).isTrue();
            assertThat(server.models().index()).hasSize(2 * last + 1);
            assertThat(backend.checks.get("m" + last)).isLessThan(1000);
        }
    }

    private static String ensemble(String first, String second) {
        return "platform: \"ensemble\"\nmax_batch_size: 8\n" + TestModels.TENSORS
                + "ensemble_scheduling {\n" + step(first, "INPUT0", "MIDDLE") + step(second, "MIDDLE", "OUTPUT0")
                + "}\n";
    }

    private static String step(String model, String from, String to) {
        return "step { model_name: \"" + model + "\" model_version: -1\n"
                + "input_map { key: \"INPUT0\" value: \"" + from + "\" }\n"
                + "output_map { key: \"OUTPUT0\" value: \"" + to + "\" } }\n";
    }

    /** The first version is not loaded again, so that it declares nothing. */
    @Test
    void aVersionThatStaysKeepsWhatItRequires() throws Exception {
        write("a");
        write("b");
        String config = parameter("load_1", "a") + parameter("load_2", "b") + "version_policy { all {} }\n";
        write("caller", config);

        try (NereidServer server = NereidServer.start(options(1, "caller"))) {
            assertThat(isReady(server, "b")).isFalse();
            Files.createDirectories(models.root().resolve("caller").resolve("2"));
            load(server, "caller");
            assertThat(backend.events).containsOnlyOnce("load caller/1", "load caller/2");
            assertThat(isReady(server, "b")).isTrue();
            load(server, "caller"); // changes nothing

            unload(server, "a", false);
            assertThat(isReady(server, "caller")).isFalse();
            load(server, "a");
            assertThat(isReady(server, "caller")).isTrue();

            Files.delete(models.root().resolve("caller").resolve("1"));
            load(server, "caller");
            unload(server, "a", false);
            assertThat(isReady(server, "caller")).as("no version requires it").isTrue();
        }
    }

    @Test
    void aRequiredModelThatCannotBeLoadedFailsTheLoad() throws Exception {
        write("caller", parameter("load", "needed"));
        write("broken", parameter("load", "neded"));
        write("needed", "max_batch_size: -1\n");

        try (NereidServer server = NereidServer.start(options(1))) {
            assertThatThrownBy(() -> load(server, "caller"))
                    .hasMessageContaining("model 'caller' requires 'needed', which has no loaded version: ");
            assertThatThrownBy(() -> load(server, "broken"))
                    .hasMessageContaining("model 'broken' requires 'neded', which has no loaded version: ")
                    .hasMessageContaining("Did you mean 'needed'?");
            write("needed");
            load(server, "caller");
            assertThat(isReady(server, "caller")).isTrue();
        }
    }

    @Test
    void aCheckRefusesNamesThatAreNotThere() {
        write("caller", parameter("complete", "needed,caller"));
        write("broken", parameter("complete", "neded"));
        write("needed");

        CheckReport report = RepositoryCheck.run(options(1));

        assertThat(report.models().stream().filter(model -> !model.isValid()))
                .singleElement()
                .satisfies(model -> assertThat(model.errors().toString())
                        .contains("version 1: requires model 'neded', which is in no model repository."
                                + " Did you mean 'needed'?"));
        assertThat(backend.events).as("nothing is loaded").isEmpty();
    }

    @Test
    void modelsAreRequiredDuringTheLoadAndOnItsThread() throws Exception {
        List<ModelContext> contexts = new CopyOnWriteArrayList<>();
        write("caller");
        write("needed");
        backend.inLoad = context -> {
            contexts.add(context);
            assertThatThrownBy(() -> CompletableFuture.runAsync(() -> context.requires("needed"))
                            .join())
                    .hasMessageContaining("called on another thread");
        };

        try (NereidServer server = NereidServer.start(options(1, "caller"))) {
            assertThatThrownBy(() -> contexts.getFirst().requires("needed"))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageStartingWith("requires: the load has ended");
            assertThat(isReady(server, "needed")).isFalse();
        }
    }

    /** The caller serves on while there is a model of the name, in its own namespace first. */
    @Test
    void aCallerFollowsTheNamespaces() throws Exception {
        Path other = Files.createDirectories(directory.resolve("other"));
        Path aside = directory.resolve("aside");
        write("caller", parameter("load", "needed"));
        write("needed");
        copy("needed", other);
        ServerOptions options = ServerOptions.of(models.root(), other)
                .withPlugins(directory.resolve("plugins"))
                .with(o -> {
                    o.providers = List.of(backend);
                    o.hasNamespaces = true;
                    o.controlMode = ModelControlMode.POLL;
                    o.pollInterval = Duration.ofMillis(20);
                    o.stabilityWindow = Duration.ofMillis(20);
                });

        try (NereidServer server = NereidServer.start(options)) {
            Files.move(models.root().resolve("needed"), aside);
            DemandFixture.await(() -> isReady(server, "needed")); // now that of the other repository alone
            assertThat(isReady(server, "caller")).isTrue();
            assertThat(backend.events).containsOnlyOnce("load caller/1").doesNotContain("close caller");

            Files.move(other.resolve("needed"), directory.resolve("gone"));
            DemandFixture.await(() -> !isReady(server, "caller"));
            Files.move(aside, models.root().resolve("needed"));
            DemandFixture.await(() -> isReady(server, "caller"));
        }
    }

    private void copy(String model, Path repository) throws IOException {
        Files.createDirectories(repository.resolve(model).resolve("1"));
        Files.copy(
                models.root().resolve(model).resolve("config.pbtxt"),
                repository.resolve(model).resolve("config.pbtxt"));
    }

    /** Memory is reserved for both, which are estimated to take 512 KiB each. */
    @Test
    void aRequestAcquiresTheMemoryOfRequiredModels() throws Exception {
        write("caller", parameter("complete", "needed"));
        write("needed");

        try (NereidServer server = NereidServer.start(onDemand(800_000))) {
            assertThat(RecordingObserver.to(server, "needed", 7).response().values())
                    .containsExactly(7f);
            assertThat(RecordingObserver.to(server, "caller", 7).error())
                    .hasMessageContaining("1048576 bytes of memory, but the budget leaves 800000");
        }
    }

    private ServerOptions onDemand(long budget) {
        return ServerOptions.of(models.root())
                .withPlugins(directory.resolve("plugins"))
                .with(o -> {
                    o.providers = List.of(backend);
                    o.onDemand();
                    o.memoryBudget = budget;
                });
    }

    @ParameterizedTest
    @ValueSource(strings = {"complete", "load"})
    void aRequestLoadsTheRequiredModelsToo(String where) throws Exception {
        write("caller", parameter(where, "needed"));
        write("needed");

        try (NereidServer server = NereidServer.start(onDemand(2_000_000))) {
            assertThat(backend.events).isEmpty();
            assertThat(RecordingObserver.to(server, "caller", 7).response().values())
                    .containsExactly(7f);
            assertThat(backend.events).containsSubsequence("load needed/1", "load caller/1");
        }
    }
}
