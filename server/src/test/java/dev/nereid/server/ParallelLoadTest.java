package dev.nereid.server;

import static dev.nereid.server.TestModels.parameter;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.ModelControl;
import dev.nereid.server.options.ServerOptions;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletionStage;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Loads of several models at a time. Each waits for a gate of its own. */
@Timeout(120)
final class ParallelLoadTest {
    private static final int MODELS = 6;

    @TempDir
    private Path directory;

    private DemandFixture fixture;

    @BeforeEach
    void setUp() throws IOException {
        fixture = DemandFixture.in(directory);
        for (int i = 0; i < MODELS; i++) {
            fixture.models().recording("m" + i, parameter("load_gate", gate("m" + i)));
            Files.createFile(Path.of(gate("m" + i)));
        }
    }

    private String gate(String model) {
        return directory.resolve("gate of " + model).toString();
    }

    @ParameterizedTest
    @CsvSource({"1, true", "2, true", "3, true", "1, false", "3, false"})
    void loadsAsManyModelsAtATimeAsIsSet(int threads, boolean isStart) throws Exception {
        try (NereidServer server = NereidServer.startLoading(options(threads, isStart))) {
            List<CompletionStage<Void>> loads = new ArrayList<>();
            for (int i = 0; !isStart && i < MODELS; i++) {
                loads.add(server.control().load(new ModelControl.Load("m" + i, Optional.empty(), Map.of())));
            }
            for (int ended = 0; ended < MODELS; ended++) {
                int begun = Math.min(MODELS, ended + threads);
                DemandFixture.await(() -> begun().size() >= begun);
                Files.delete(Path.of(gate(begun().get(ended))));
            }
            for (CompletionStage<Void> load : loads) {
                load.toCompletableFuture().get();
            }
            server.awaitModels();
        }
        assertThat(mostAtATime()).isEqualTo(threads);
    }

    /** Returns the models whose loads have begun, in this order. */
    private List<String> begun() throws IOException {
        return Files.exists(directory.resolve("events"))
                ? fixture.loads().stream()
                        .map(load -> load.substring("load ".length(), load.indexOf('/')))
                        .toList()
                : List.of();
    }

    /** Returns the largest number of loads between their first event and their last. */
    private int mostAtATime() throws IOException {
        int running = 0;
        int most = 0;
        for (String event : fixture.events()) {
            running += event.startsWith("load ") ? 1 : 0;
            running -= event.startsWith("instance ") ? 1 : 0;
            most = Math.max(most, running);
        }
        assertThat(running).isZero();
        return most;
    }

    private ServerOptions options(int threads, boolean isStart) {
        return ServerOptions.of(fixture.models().root())
                .withPlugins(directory.resolve("plugins"))
                .withBackendSetting(
                        "recording", "events", directory.resolve("events").toString())
                .with(o -> {
                    o.explicit(isStart ? new String[] {"*"} : new String[0]);
                    o.loadThreads = threads;
                    o.processors = 2;
                });
    }
}
