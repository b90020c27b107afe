package dev.nereid.server;

import static dev.nereid.server.DemandFixture.await;
import static dev.nereid.server.DemandFixture.infer;
import static dev.nereid.server.DemandFixture.pause;
import static dev.nereid.server.TestModels.parameter;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.ModelRef;
import dev.nereid.spi.MemoryUsage;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The memory of models that grow and shrink while they are loaded. */
@Tag("slow")
@Timeout(120)
final class ModelMemoryTest {
    @TempDir
    private Path directory;

    private DemandFixture fixture;

    @BeforeEach
    void setUp() throws IOException {
        fixture = DemandFixture.in(directory);
    }

    /** Adds a model whose memory is the content of a file, and whose backend waits while there is a file "memory_gate". */
    private Path model(String name, String bytes) throws IOException {
        Path file = Files.createDirectories(directory.resolve("memory-" + name)).resolve("bytes");
        Files.writeString(file, bytes);
        fixture.models().recording(name, parameter("memory_file", file.toString()));
        return file;
    }

    private static long reported(NereidServer server, String model) {
        return server.models().statistics(ModelRef.latest(model)).getFirst().memory().stream()
                .mapToLong(MemoryUsage::byteSize)
                .sum();
    }

    private long calls(String model) throws IOException {
        return fixture.events().stream()
                .filter(event -> event.equals("memory " + model + "/1"))
                .count();
    }

    @Test
    void isReadAgainWhileStatisticsAreRead() throws Exception {
        Path file = model("m", "1000");
        try (NereidServer server = fixture.start(0)) {
            infer(server, "m", 1);
            assertThat(reported(server, "m")).isEqualTo(1000);

            Files.writeString(file, "5000");

            await(() -> reported(server, "m") == 5000);
            await(() -> server.demand().orElseThrow().memory().get("m") == 5000);
        }
    }

    @Test
    void keepsTheLastValueOfABackendThatFails() throws Exception {
        Path file = model("m", "1000");
        try (NereidServer server = fixture.start(0)) {
            infer(server, "m", 1);
            for (String broken : List.of("-7", "no number")) {
                Files.writeString(file, broken);
                long seen = calls("m");
                await(() -> {
                    assertThat(reported(server, "m")).isEqualTo(1000);
                    return calls("m") == seen + 2; // the first of them has ended
                });
            }
            Files.writeString(file, "3");

            await(() -> reported(server, "m") == 3);
        }
    }

    /** A slow backend is called once at a time, keeps its model from a close alone, and is not called after it. */
    @Test
    void neverCallsAModelThatIsClosed() throws Exception {
        Path gate = model("m", "1000").resolveSibling("memory_gate");
        try (NereidServer server = fixture.start(0)) {
            infer(server, "m", 1);
            Files.createFile(gate);
            await(() -> reported(server, "m") == 1000 && calls("m") == 2);

            assertThat(infer(server, "m", 2)).as("requests go on").containsExactly(2f);
            TestControl.unload(server, "m");
            assertThat(fixture.events()).doesNotContain("close m/1");
            Files.delete(gate);

            await(() -> fixture.events().contains("close m/1"));
            assertThat(fixture.events()).containsSubsequence("memory m/1", "memory m/1", "close m/1");
            assertThat(calls("m")).isEqualTo(2);
        }
    }

    @Test
    void evictsIdleModelsForOneThatHasGrown() throws Exception {
        model("a", "1000000");
        Path grown = model("b", "1000000");
        try (NereidServer server = fixture.start(2_200_000)) {
            infer(server, "a", 1);
            pause();
            infer(server, "b", 1);
            Files.writeString(grown, "2000000");

            await(() -> {
                reported(server, "b");
                return fixture.events().contains("close a/1");
            });

            await(() -> server.demand().orElseThrow().memory().equals(Map.of("b", 2_000_000L)));
            assertThat(infer(server, "a", 3)).as("in place of b").containsExactly(3f);
            await(() -> fixture.events().contains("close b/1"));
        }
    }

    @Test
    void evictsAnotherModelThanOneWhoseBackendIsAsked() throws Exception {
        Path gate = model("a", "1000000").resolveSibling("memory_gate");
        model("b", "1000000");
        model("c", "1000000");
        try (NereidServer server = NereidServer.start(fixture.options(o -> o.memoryBudget = 2_000_000))) {
            infer(server, "a", 1);
            pause();
            infer(server, "b", 1);
            Files.createFile(gate);
            await(() -> {
                reported(server, "a");
                return calls("a") == 2;
            });

            assertThat(infer(server, "c", 3)).containsExactly(3f);

            assertThat(fixture.events()).contains("close b/1").doesNotContain("close a/1");
            Files.delete(gate);
        }
    }
}
