package dev.nereid.server;

import static dev.nereid.server.TestModels.parameter;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelRef;
import dev.nereid.server.options.DemandOptions;
import dev.nereid.server.options.ServerOptions;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** A server that loads models with their first requests. See {@code PlanningTest} for what is evicted. */
@Timeout(120)
final class DemandModeTest {
    private static final String MEGABYTE = parameter("memory_bytes", "1000000");

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
    void loadsAModelWithItsFirstRequest() throws Exception {
        models.recording("m", "", 1, 2).recording("n", "");
        try (NereidServer server = start(0)) {
            assertThat(loads()).isEmpty();
            assertThat(server.isReady()).isTrue();
            assertThat(server.models().isReady(ModelRef.latest("m"))).isTrue();
            assertThat(TestControl.index(server)).containsExactly("m 2 READY", "n 1 READY");
            assertThat(server.models().metadata(ModelRef.latest("m")).inputs()).hasSize(1);
            assertThat(server.models().config(ModelRef.latest("m")).getBackend())
                    .isEqualTo("recording");
            assertThat(server.models().configJson(ModelRef.parse("m", "2"))).contains("recording");
            assertThat(loads()).isEmpty();

            assertThat(infer(server, "m", 3)).containsExactly(3f);

            assertThat(loads()).containsExactly("load m/2 on [cpu]");
            assertThat(infer(server, "m", 4)).containsExactly(4f);
            assertThat(loads()).hasSize(1);
        }
    }

    @Test
    void loadsOnceForManyFirstRequests() throws Exception {
        models.recording("m", "");
        try (NereidServer server = start(0)) {
            List<RecordingObserver> observers = IntStream.range(0, 200)
                    .parallel()
                    .mapToObj(i -> RecordingObserver.to(server, "m", i))
                    .toList();

            for (RecordingObserver observer : observers) {
                assertThat(observer.response().values()).hasSize(1);
                assertThat(observer.terminals()).isEqualTo(1);
            }
            assertThat(loads()).containsExactly("load m/1 on [cpu]");
        }
    }

    @Test
    void evictsTheLeastRecentlyUsedModel() throws Exception {
        for (String name : List.of("a", "b", "c")) {
            models.recording(name, MEGABYTE);
        }
        try (NereidServer server = start(2_000_000)) {
            infer(server, "a", 1);
            infer(server, "b", 1);
            Thread.onSpinWait();
            infer(server, "a", 1);
            infer(server, "c", 1);

            assertThat(events()).contains("close b/1").doesNotContain("close a/1");
            assertThat(TestControl.index(server)).containsExactly("a 1 READY", "b 1 READY", "c 1 READY");
            assertThat(server.models().isReady(ModelRef.latest("b"))).isTrue();
            assertThat(server.isReady()).isTrue();
            assertThat(infer(server, "b", 2)).containsExactly(2f);
        }
    }

    private static List<Float> infer(NereidServer server, String model, float value) {
        return RecordingObserver.to(server, model, value).response().values();
    }

    private List<String> events() throws IOException {
        return Files.readAllLines(directory.resolve("events"));
    }

    private List<String> loads() throws IOException {
        List<String> loads = new ArrayList<>(events());
        loads.removeIf(event -> !event.startsWith("load "));
        return loads;
    }

    private NereidServer start(long budget, String... pinned) throws InterruptedException, InferenceException {
        return NereidServer.start(options(DemandOptions.DEFAULT.withMemoryBudget(budget), pinned));
    }

    private ServerOptions options(DemandOptions demand, String... pinned) {
        return ServerOptions.of(models.root())
                .withPlugins(plugins)
                .withBackendSetting(
                        "recording", "events", directory.resolve("events").toString())
                .withLifecycle(lifecycle -> lifecycle.withControl(control -> control.withDemand(demand, pinned)))
                .withModels(model -> model.withInstances(instances -> instances.withProcessors(2)));
    }
}
