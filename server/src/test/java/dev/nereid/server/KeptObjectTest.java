package dev.nereid.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.ModelControl;
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
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Objects that a backend keeps during a load, such as processes. */
@Timeout(60)
final class KeptObjectTest {
    @TempDir
    private Path directory;

    private final List<String> events = new CopyOnWriteArrayList<>();
    private final Keeping backend = new Keeping();
    private TestModels models;

    @BeforeEach
    void setUp() throws IOException {
        Files.createDirectories(directory.resolve("plugins"));
        models = new TestModels(Files.createDirectories(directory.resolve("models")));
        write(1);
    }

    private void write(int instances) {
        models.model(
                "m",
                "backend: \"keeping\"\nmax_batch_size: 8\n" + TestModels.TENSORS + "instance_group { count: "
                        + instances + " kind: KIND_CPU }\n");
    }

    /** Stands for a process. */
    private static class Program implements AutoCloseable {
        final String name;
        final List<String> events;

        Program(String name, List<String> events) {
            this.name = name;
            this.events = events;
        }

        @Override
        public void close() {
            events.add("end " + name);
        }
    }

    /** A process with an end that fails. */
    private static final class Stubborn extends Program {
        Stubborn(String name, List<String> events) {
            super(name, events);
        }

        @Override
        public void close() {
            boolean isOwn = Objects.equals(
                    Thread.currentThread().getContextClassLoader(), KeptObjectTest.class.getClassLoader());
            events.add("end " + name + (isOwn ? " with its loader" : " with another loader"));
            throw new IllegalStateException("it runs on");
        }
    }

    /** An action of a method of the backend with the objects. */
    private interface Step {
        Step NONE = _ -> {};

        void run(ModelContext context);
    }

    /** Runs a step in each method. Confined to one load at a time. */
    private final class Keeping implements BackendProvider, Backend {
        Step complete = Step.NONE;
        Step load = Step.NONE;
        Step newInstance = Step.NONE;
        ModelCompletion completion = ModelCompletion.EMPTY;

        @Override
        public String name() {
            return "keeping";
        }

        @Override
        public Backend create(BackendContext context) {
            return this;
        }

        @Override
        public Optional<ModelCompletion> complete(ModelContext context) {
            complete.run(context);
            return Optional.of(completion);
        }

        @Override
        public Model load(ModelContext context) {
            load.run(context);
            return new Model() {
                @Override
                public ModelInstance newInstance(InstanceContext instance) {
                    newInstance.run(context);
                    return KeptObjectTest::execute;
                }

                @Override
                public void close() {
                    events.add("close model");
                }
            };
        }
    }

    private static void execute(Batch batch) {
        batch.put("OUTPUT0", batch.gather("INPUT0"));
    }

    private Program program(String name) {
        return new Program(name, events);
    }

    private void took(Optional<Program> program) {
        events.add(program.map(taken -> "took " + taken.name).orElse("took nothing"));
    }

    private ServerOptions options() {
        return ServerOptions.of(models.root())
                .withPlugins(directory.resolve("plugins"))
                .with(o -> {
                    o.providers = List.of(backend);
                    o.controlMode = ModelControlMode.EXPLICIT;
                });
    }

    private static void load(NereidServer server) throws Exception {
        server.control()
                .load(new ModelControl.Load("m", Optional.empty(), Map.of()))
                .toCompletableFuture()
                .get(30, TimeUnit.SECONDS);
    }

    @Test
    void theLoadTakesWhatTheCompletionKept() throws Exception {
        backend.complete =
                context -> assertThat(context.keep(program("a")).name).isEqualTo("a");
        backend.load = context -> took(context.take(Program.class));

        try (NereidServer server = NereidServer.start(options())) {
            load(server);
            assertThat(events).as("the process is the plugin's").containsExactly("took a");
        }
        assertThat(events).containsExactly("took a", "close model");
    }

    @Test
    void theFirstInstanceTakesWhatIsLeft() throws Exception {
        write(2);
        backend.complete = context -> context.keep(program("a"));
        backend.newInstance = context -> took(context.take(Program.class));

        try (NereidServer server = NereidServer.start(options())) {
            load(server);
            assertThat(events).containsExactly("took a", "took nothing");
        }
    }

    @Test
    void whatIsNotTakenEndsWithTheLoad() throws Exception {
        backend.complete = context -> {
            context.keep(program("a"));
            context.keep(program("b"));
            context.keep(program("c"));
        };
        backend.load = context -> {
            took(context.take(Program.class));
            assertThat(context.take(Stubborn.class)).isEmpty();
        };

        try (NereidServer server = NereidServer.start(options())) {
            load(server);
            assertThat(events)
                    .as("of one class the first is taken, and the last ends first")
                    .containsExactly("took a", "end c", "end b");
        }
    }

    @Test
    void whatIsNotTakenEndsWithAFailedLoad() throws Exception {
        backend.complete = context -> context.keep(program("a"));
        backend.load = _ -> {
            throw new BackendException(ErrorCode.UNAVAILABLE, "no device");
        };

        try (NereidServer server = NereidServer.start(options())) {
            assertThatThrownBy(() -> load(server)).hasMessageContaining("no device");
            assertThat(events).containsExactly("end a");

            backend.load = Step.NONE;
            backend.newInstance = _ -> {
                throw new BackendException(ErrorCode.UNAVAILABLE, "no memory");
            };
            assertThatThrownBy(() -> load(server)).hasMessageContaining("no memory");
            assertThat(events).containsExactly("end a", "end a", "close model");
        }
    }

    /** The process ends although the backend is not called again. */
    @Test
    void whatIsNotTakenEndsIfNoLoadFollows() throws Exception {
        backend.complete = context -> context.keep(program("a"));
        backend.completion = ModelCompletion.EMPTY.withMaxBatchSizeLimit(4);
        backend.load = context -> events.add("load");

        try (NereidServer server = NereidServer.start(options())) {
            assertThatThrownBy(() -> load(server)).hasMessageContaining("max_batch_size");
        }
        assertThat(events).containsExactly("end a");

        backend.completion = ModelCompletion.EMPTY;
        assertThat(RepositoryCheck.run(options()).isValid()).isTrue();
        assertThat(events).as("of a check").containsExactly("end a", "end a");
    }

    @Test
    void nothingIsKeptOrTakenAfterTheLoad() throws Exception {
        List<ModelContext> contexts = new CopyOnWriteArrayList<>();
        backend.complete = context -> context.keep(program("a"));
        backend.load = contexts::add;

        try (NereidServer server = NereidServer.start(options())) {
            load(server);
            ModelContext context = contexts.getFirst();
            assertThat(context.take(Program.class)).isEmpty();
            assertThatIllegalStateException()
                    .isThrownBy(() -> context.keep(program("b")))
                    .withMessageStartingWith("keep: the load has ended");
            assertThat(events).containsExactly("end a");
        }
    }

    @Test
    void anEndThatFailsChangesNothingElse() throws Exception {
        backend.complete = context -> {
            context.keep(program("a"));
            context.keep(new Stubborn("b", events));
        };

        try (NereidServer server = NereidServer.start(options())) {
            load(server);
            assertThat(events).containsExactly("end b with its loader", "end a");
            assertThat(RecordingObserver.to(server, "m", 7).response().values()).containsExactly(7f);
        }
    }
}
