package dev.nereid.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.nereid.api.ModelControl;
import dev.nereid.server.options.ServerOptions;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributeView;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.FileTime;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Tests that the load of one model reads nothing of others. The file system records the first read of each file and
 * directory after its access time was set back, which takes one that records access times at all.
 */
@Timeout(120)
final class ModelIsolationTest {
    private static final String CONFIG = """
            {"backend": "recording", "max_batch_size": 8,
             "input": [{"name": "INPUT0", "data_type": "TYPE_FP32", "dims": [-1]}],
             "output": [{"name": "OUTPUT0", "data_type": "TYPE_FP32", "dims": [-1]}]}
            """;

    @TempDir
    private Path directory;

    private DemandFixture fixture;
    private TestModels models;

    @BeforeEach
    void setUp() throws IOException {
        fixture = DemandFixture.in(directory);
        models = fixture.models();
        for (String name : List.of("a", "m", "z")) {
            models.recording(name, "version_policy { all {} }\n", 1, 2);
            Files.writeString(models.root().resolve(name).resolve("1/model.bin"), name);
            Files.writeString(models.root().resolve(name).resolve("labels.txt"), name);
        }
    }

    @Test
    void readsNothingOfOtherModelsForALoad() throws Exception {
        ServerOptions options = explicit();
        try (NereidServer server = NereidServer.start(options)) {
            assertReadsOneModel(() -> TestControl.load(server, "m"), true);
            assertReadsOneModel(() -> TestControl.load(server, "m"), false);
            assertReadsOneModel(() -> TestControl.force(server, "m"), true);
            assertReadsOneModel(() -> TestControl.load(server, "m", CONFIG, Map.of()), false);
            assertReadsOneModel(() -> TestControl.unload(server, "m"), false);
        }
    }

    @Test
    void readsNothingOfOtherModelsForAFirstRequest() throws Exception {
        ServerOptions options = fixture.options(_ -> {});
        try (NereidServer server = NereidServer.start(options)) {
            assertReadsOneModel(
                    () -> assertThat(DemandFixture.infer(server, "m", 1)).containsExactly(1f), true);
        }
    }

    @Test
    void failsWithoutAScanOfOtherModels() throws Exception {
        try (NereidServer server = NereidServer.start(explicit())) {
            assertReadsOneModel(
                    () -> assertThat(server.control()
                                    .load(new ModelControl.Load("nope", Optional.empty(), Map.of()))
                                    .toCompletableFuture())
                            .failsWithin(Duration.ofSeconds(60)),
                    false);
        }
    }

    private interface Action {
        void run() throws Exception;
    }

    private void assertReadsOneModel(Action action, boolean readsConfig) throws Exception {
        List<Path> all = new ArrayList<>();
        try (Stream<Path> paths = Files.walk(models.root())) {
            paths.forEach(all::add);
        }
        for (Path path : all) {
            Files.getFileAttributeView(path, BasicFileAttributeView.class).setTimes(null, FileTime.fromMillis(0), null);
        }

        action.run();

        List<String> read = new ArrayList<>();
        for (Path path : all) {
            FileTime accessed =
                    Files.readAttributes(path, BasicFileAttributes.class).lastAccessTime();
            if (accessed.toMillis() != 0) {
                read.add(models.root().relativize(path).toString());
            }
        }
        if (readsConfig) {
            assumeTrue(read.contains("m/config.pbtxt"), "the file system records no access times");
        }
        assertThat(read).allMatch(path -> path.equals("m") || path.startsWith("m/"));
    }

    private ServerOptions explicit() {
        return ServerOptions.of(models.root())
                .withPlugins(directory.resolve("plugins"))
                .with(o -> o.pluginCache = directory.resolve("work"))
                .withBackendSetting(
                        "recording", "events", directory.resolve("events").toString())
                .with(o -> {
                    o.explicit("a");
                    o.processors = 2;
                });
    }
}
