package dev.nereid.server;

import static dev.nereid.server.TestModels.parameter;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelRef;
import dev.nereid.api.ModelStatus;
import dev.nereid.api.statistics.ModelStatistics;
import dev.nereid.server.options.RateLimitOptions;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.spi.ErrorCode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Rate limiter settings of configurations, from the load to the permits. */
@Timeout(60)
final class RateLimitLoadTest {
    private static final String BOTH_KINDS =
            "Resource \"R\" is present as both global and device-specific resource in the model configuration.";

    @TempDir
    private Path directory;

    private Path plugins;
    private TestModels models;

    @BeforeEach
    void setUp() throws IOException {
        plugins = Files.createDirectories(directory.resolve("plugins"));
        models = new TestModels(Files.createDirectories(directory.resolve("models")));
        TestPlugins.recording(plugins);
    }

    @Test
    void sharesAResourceAmongModels() throws Exception {
        try (NereidServer server =
                serveTwo(options().with(o -> o.rateLimit = Optional.of(new RateLimitOptions(List.of()))))) {
            RecordingObserver a = RecordingObserver.to(server, "a", 1);
            RecordingObserver b = RecordingObserver.to(server, "b", 2);

            await(() -> waiting(server, "a") + waiting(server, "b") == 1);
            assertThat(List.of(a.terminals(), b.terminals())).containsOnly(0);
            Files.delete(gate());

            assertThat(a.response().values()).containsExactly(1f);
            assertThat(b.response().values()).containsExactly(2f);
        }
    }

    @Test
    void ignoresResourcesWhenOff() throws Exception {
        try (NereidServer server = serveTwo(options())) {
            RecordingObserver a = RecordingObserver.to(server, "a", 1);
            RecordingObserver b = RecordingObserver.to(server, "b", 2);

            await(() -> waiting(server, "a") + waiting(server, "b") == 0);
            assertThat(List.of(a.terminals(), b.terminals()))
                    .as("both are executed")
                    .containsOnly(0);
            Files.delete(gate());

            a.response();
            b.response();
        }
    }

    @Test
    void sharesNothingAmongServersWithEqualOptions() throws Exception {
        ServerOptions options = options().with(o -> o.rateLimit = Optional.of(new RateLimitOptions(List.of())));
        try (NereidServer first = serveTwo(options);
                NereidServer second = NereidServer.start(options)) {
            RecordingObserver one = RecordingObserver.to(first, "a", 1);
            RecordingObserver other = RecordingObserver.to(second, "a", 2);

            await(() -> waiting(first, "a") + waiting(second, "a") == 0);
            Files.delete(gate());

            assertThat(one.response().values()).containsExactly(1f);
            assertThat(other.response().values()).containsExactly(2f);
        }
    }

    @Test
    void refusesAnInstanceThatCouldNeverRun() throws Exception {
        models.recording("m", group("resources { name: \"R\" count: 4 }"));
        models.recording("fits", group("resources { name: \"R\" count: 3 }"));

        try (NereidServer server = NereidServer.start(options().with(o -> {
            o.exitOnError = false;
            o.rateLimit = Optional.of(
                    new RateLimitOptions(List.of(new RateLimitOptions.Resource("R", 3, OptionalInt.empty()))));
        }))) {
            assertThat(reasons(server))
                    .containsExactly(Map.entry(
                            "m",
                            "Invalid argument: Resource count for \"R\" is limited to 3 which will prevent scheduling of one or more model"
                                    + " instances, the minimum required count is 4"));
            assertThat(RecordingObserver.to(server, "fits", 1).response().values())
                    .containsExactly(1f);
        }
        assertThat(Files.readAllLines(events())).contains("close m_0_0", "close m/1");
    }

    @Test
    void refusesAResourceOfBothKinds() throws Exception {
        models.recording(
                "m",
                group("resources { name: \"R\" count: 1 }") + group("resources { name: \"R\" global: true count: 1 }"));

        try (NereidServer server = NereidServer.start(options().with(o -> {
            o.exitOnError = false;
            o.rateLimit = Optional.of(new RateLimitOptions(List.of()));
        }))) {
            assertThat(reasons(server)).containsExactly(Map.entry("m", "Invalid argument: " + BOTH_KINDS));
        }
    }

    @Test
    void refusesAResourceThatIsOfAnotherKindInAnotherModel() throws Exception {
        models.recording("a", group("resources { name: \"R\" count: 1 }"));
        models.recording("b", group("resources { name: \"R\" global: true count: 1 }"));

        try (NereidServer server = NereidServer.start(options().with(o -> {
            o.exitOnError = false;
            o.loadThreads = 1;
            o.rateLimit = Optional.of(new RateLimitOptions(List.of()));
        }))) {
            assertThat(reasons(server)).containsExactly(Map.entry("b", "Invalid argument: " + BOTH_KINDS));
        }
    }

    /** The old instances serve while the new ones are created, and no resource is of both kinds meanwhile. */
    @Test
    void reportsThatAnotherKindOfResourceNeedsAReload() throws Exception {
        models.recording("m", group("resources { name: \"R\" count: 1 }"));
        try (NereidServer server =
                NereidServer.start(options().with(o -> o.rateLimit = Optional.of(new RateLimitOptions(List.of()))))) {
            models.recording("m", group("resources { name: \"R\" global: true count: 1 }"));

            assertThatThrownBy(() -> server.updateInstances("m"))
                    .isInstanceOfSatisfying(
                            InferenceException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT))
                    .hasMessage("model 'm' cannot be updated while it serves: its resource \"R\" is one of each device,"
                            + " and would be one of all devices (expected: a change of its instances alone; load the"
                            + " model again)");
            assertThat(RecordingObserver.to(server, "m", 1).response().values()).containsExactly(1f);

            models.recording(
                    "m", group("resources { name: \"R\" count: 1 }") + group("resources { name: \"R\" global: true }"));
            assertThatThrownBy(() -> server.updateInstances("m")).hasMessage(BOTH_KINDS);
            models.recording("m", group("resources { name: \"R\" count: 2 }"));
            server.updateInstances("m");
            assertThat(RecordingObserver.to(server, "m", 1).response().values()).containsExactly(1f);
        }
    }

    @Test
    void changesTheKindOfAResourceWhenOff() throws Exception {
        models.recording("m", group("resources { name: \"R\" global: true count: 1 }"));
        try (NereidServer server = NereidServer.start(options())) {
            models.recording("m", group("resources { name: \"R\" count: 1 }"));

            server.updateInstances("m");

            assertThat(RecordingObserver.to(server, "m", 1).response().values()).containsExactly(1f);
        }
    }

    @Test
    void passiveInstancesTakeNothing() throws Exception {
        String passive =
                group("resources { name: \"R\" count: 9 }").replace("count: 1 kind", "passive: true count: 1 kind");
        models.recording("m", passive + group("resources { name: \"R\" count: 1 }"));

        try (NereidServer server = NereidServer.start(options()
                .with(o -> o.rateLimit = Optional.of(
                        new RateLimitOptions(List.of(new RateLimitOptions.Resource("R", 1, OptionalInt.of(0)))))))) {
            assertThat(RecordingObserver.to(server, "m", 1).response().values()).containsExactly(1f);
        }
    }

    /** Two models that share all of a resource, both of which wait at a gate when they are executed. */
    private NereidServer serveTwo(ServerOptions options) throws IOException, InterruptedException {
        Files.createFile(gate());
        for (String name : List.of("a", "b")) {
            models.recording(
                    name,
                    group("resources { name: \"R\" global: true count: 1 } priority: 1")
                            + parameter("gate", gate().toString()));
        }
        return NereidServer.start(options);
    }

    private Path gate() {
        return directory.resolve("gate");
    }

    private Path events() {
        return directory.resolve("events");
    }

    private static String group(String limiter) {
        return "instance_group { count: 1 kind: KIND_CPU rate_limiter { " + limiter + " } }\n";
    }

    private ServerOptions options() {
        return ServerOptions.of(models.root())
                .withPlugins(plugins)
                .withBackendSetting("recording", "events", events().toString());
    }

    private static Map<String, String> reasons(NereidServer server) {
        return server.models().index().stream()
                .filter(status -> status.state() == ModelStatus.State.UNAVAILABLE)
                .collect(Collectors.toMap(ModelStatus::name, ModelStatus::reason));
    }

    private static long waiting(NereidServer server, String model) {
        try {
            ModelStatistics statistics =
                    server.models().statistics(ModelRef.latest(model)).getFirst();
            return statistics.metrics().pending();
        } catch (InferenceException e) {
            throw new AssertionError(e);
        }
    }

    private static void await(BooleanSupplier condition) {
        while (!condition.getAsBoolean()) {
            Thread.onSpinWait();
        }
    }
}
