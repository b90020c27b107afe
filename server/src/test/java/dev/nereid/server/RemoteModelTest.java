package dev.nereid.server;

import static dev.nereid.server.TestControl.awaitIndex;
import static dev.nereid.server.TestControl.index;
import static dev.nereid.server.TestControl.load;
import static dev.nereid.server.TestControl.unload;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferenceException;
import dev.nereid.server.options.ModelControlMode;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.spi.ErrorCode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** A server with local models and models in a remote storage. */
@Timeout(120)
final class RemoteModelTest {
    private static final String DOWN = "model repository 'disk://models': %s: the disk is down";

    @TempDir
    private Path directory;

    private Path plugins;
    private TestModels models;
    private TestStorage storage;

    @BeforeEach
    void setUp() throws IOException {
        plugins = Files.createDirectories(directory.resolve("plugins"));
        models = new TestModels(Files.createDirectories(directory.resolve("models")));
        TestPlugins.recording(plugins);
        storage = new TestStorage(Files.createDirectories(directory.resolve("storage")));
        models.recording("near", "");
        storage.models().recording("far", "version_policy { all {} }\n", 1, 2);
        storage.put("far/1/model.bin", "one").put("far/2/model.bin", "two").put("far/labels.txt", "a");
    }

    /** A new version in the storage loads that version; the others are neither downloaded nor loaded again. */
    @Test
    void loadsOnlyTheVersionsThatChanged() throws Exception {
        try (NereidServer server = NereidServer.start(explicit("far"))) {
            assertThat(storage.reads())
                    .containsExactly("far/1/model.bin", "far/2/model.bin", "far/config.pbtxt", "far/labels.txt");
            assertThat(loads()).containsExactly("far/1", "far/2");

            storage.put("far/3/model.bin", "three");
            load(server, "far");
            assertThat(storage.reads()).containsExactly("far/3/model.bin");
            assertThat(loads()).containsExactly("far/1", "far/2", "far/3");
            awaitIndex(server, "far 1 READY", "far 2 READY", "far 3 READY", "near UNKNOWN");

            storage.put("far/2/model.bin", "TWO");
            load(server, "far");
            assertThat(storage.reads()).containsExactly("far/2/model.bin");
            assertThat(loads()).containsExactly("far/1", "far/2", "far/3", "far/2");

            storage.put("far/labels.txt", "b");
            load(server, "far");
            assertThat(loads()).as("a file of all versions").hasSize(7);

            load(server, "far");
            assertThat(loads()).as("nothing has changed").hasSize(7);
            assertThat(infer(server, "far")).containsExactly(7f);
        }
    }

    @Test
    void pollsVersionsOneByOne() throws Exception {
        try (NereidServer server = NereidServer.start(poll())) {
            awaitIndex(server, "far 1 READY", "far 2 READY", "near 1 READY");
            storage.put("far/3/model.bin", "three");
            awaitIndex(server, "far 1 READY", "far 2 READY", "far 3 READY", "near 1 READY");
            assertThat(loads()).filteredOn(load -> load.startsWith("far")).containsExactly("far/1", "far/2", "far/3");
        }
    }

    /** Of a storage, only the objects of a model are listed for its load. */
    @Test
    void listsNothingOfOtherModelsForALoad() throws Exception {
        storage.models().recording("other", "");
        try (NereidServer server = NereidServer.start(explicit())) {
            storage.lists();
            storage.reads();

            load(server, "far");

            assertThat(storage.lists()).isNotEmpty().containsOnly("far/");
            assertThat(storage.reads()).isNotEmpty().allMatch(key -> key.startsWith("far/"));
        }
    }

    /**
     * Within the window, which does not end here, the poller finds that objects are gone, and then that they are back with
     * other times.
     */
    @Test
    void leavesAModelAloneWhoseObjectsAreGoneForAMoment() throws Exception {
        ServerOptions patient = options().with(o -> {
            o.controlMode = ModelControlMode.POLL;
            o.pollInterval = Duration.ofMillis(20);
            o.stabilityWindow = Duration.ofHours(1);
        });
        try (NereidServer server = NereidServer.start(patient)) {
            awaitScans(2);
            for (String key : List.of("far/1/model.bin", "far/config.pbtxt", "")) {
                Path gone = storage.models().root().resolve(key.isEmpty() ? "far" : key);
                Files.move(gone, directory.resolve("away"));
                awaitScans(3);
                assertThat(index(server)).containsExactly("far 1 READY", "far 2 READY", "near 1 READY");
                Files.move(directory.resolve("away"), gone);
                Files.setLastModifiedTime(
                        storage.models().root().resolve("far/1/model.bin"), FileTime.from(Instant.now()));
                awaitScans(3);
            }

            assertThat(index(server)).containsExactly("far 1 READY", "far 2 READY", "near 1 READY");
            assertThat(infer(server, "far")).containsExactly(7f);
            assertThat(loads()).as("each version once").hasSize(3);
            assertThat(server.models().loadCounts())
                    .allMatch(counts -> counts.unloads() == 0 && counts.failures() == 0);
        }
        assertThat(storage.reads()).as("each object once").hasSize(4);
    }

    /** Without a long window, the same is an unload and a load. */
    @Test
    void unloadsAModelWhoseObjectsAreGone() throws Exception {
        try (NereidServer server = NereidServer.start(poll())) {
            Path far = storage.models().root().resolve("far");
            Files.move(far, directory.resolve("away"));
            awaitIndex(server, "far 1 UNAVAILABLE unloaded", "far 2 UNAVAILABLE unloaded", "near 1 READY");

            Files.move(directory.resolve("away"), far);
            awaitIndex(server, "far 1 READY", "far 2 READY", "near 1 READY");
            assertThat(loads()).hasSize(5);
        }
    }

    /** Waits until the whole storage was listed as often from now on. */
    private void awaitScans(int count) {
        storage.lists();
        int scans = 0;
        while (scans < count) {
            scans += (int) storage.lists().stream().filter(String::isEmpty).count();
            LockSupport.parkNanos(1_000_000);
        }
    }

    /** A configuration that a client gave stays while the objects do. */
    @Test
    void keepsAConfigurationOfAClientUntilTheObjectsChange() throws Exception {
        String config = "{\"backend\": \"recording\", \"max_batch_size\": 3, \"input\": [{\"name\": \"INPUT0\","
                + " \"data_type\": \"TYPE_FP32\", \"dims\": [-1]}], \"output\": [{\"name\": \"OUTPUT0\","
                + " \"data_type\": \"TYPE_FP32\", \"dims\": [-1]}]}";
        try (NereidServer server = NereidServer.start(explicit())) {
            load(server, "far", config, Map.of());
            load(server, "far");
            assertThat(maxBatchSize(server)).isEqualTo(3);

            storage.put("far/1/model.bin", "another");
            load(server, "far");
            assertThat(maxBatchSize(server)).isEqualTo(8);
        }
    }

    private static int maxBatchSize(NereidServer server) {
        return server.models().config(dev.nereid.api.ModelRef.latest("far")).getMaxBatchSize();
    }

    @Test
    void servesLocalModelsWhileTheStorageIsDown() throws Exception {
        storage.set("down");
        try (NereidServer server = NereidServer.start(explicit())) {
            assertThat(server.isReady()).isTrue();
            load(server, "near");
            assertThat(infer(server, "near")).containsExactly(7f);
            assertThat(index(server)).containsExactly("near 1 READY");
            unload(server, "near");
            load(server, "near");

            assertThatThrownBy(() -> load(server, "far"))
                    .isInstanceOfSatisfying(
                            InferenceException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.UNAVAILABLE))
                    .hasMessage(DOWN.formatted("model 'far' cannot be listed"));
            assertThat(index(server)).as("whatever clients name").containsExactly("near 1 READY");

            storage.clear("down");
            load(server, "far");
            awaitIndex(server, "far 1 READY", "far 2 READY", "near 1 READY");
        }
    }

    @Test
    void showsTheModelsOfAStorageThatWentDown() throws Exception {
        storage.models().recording("other", "");
        storage.put("other/1/model.bin", "x");
        try (NereidServer server = NereidServer.start(explicit("far"))) {
            awaitIndex(server, "far 1 READY", "far 2 READY", "near UNKNOWN", "other UNKNOWN");

            storage.set("down");

            awaitIndex(
                    server,
                    "far 1 READY",
                    "far 2 READY",
                    "near UNKNOWN",
                    "other UNAVAILABLE " + DOWN.formatted("cannot be listed"));
            assertThat(infer(server, "far")).containsExactly(7f);
            unload(server, "far");
            awaitIndex(
                    server,
                    "far 1 UNAVAILABLE unloaded",
                    "far 2 UNAVAILABLE unloaded",
                    "near UNKNOWN",
                    "other UNAVAILABLE " + DOWN.formatted("cannot be listed"));
        }
    }

    @Test
    void loadsAllLocalModelsWhileTheStorageIsDown() throws Exception {
        storage.set("down");
        for (ServerOptions options : List.of(explicit("*"), poll())) {
            assertThatThrownBy(() -> NereidServer.start(options))
                    .hasMessage("failed to load all models:\n  disk://models: " + DOWN.formatted("cannot be listed"));
            try (NereidServer server = NereidServer.start(tolerant(options))) {
                assertThat(index(server)).containsExactly("near 1 READY");
                assertThat(server.isReady()).isTrue();
                assertThat(infer(server, "near")).containsExactly(7f);
            }
        }
    }

    /** A storage that does not respond delays no local model. */
    @Tag("slow")
    @Test
    void servesLocalModelsWhileTheStorageIsSilent() throws Exception {
        storage.set("silent");
        try (NereidServer server = NereidServer.startLoading(poll())) {
            while (!server.models().index().stream()
                    .allMatch(status -> status.state() == dev.nereid.api.ModelStatus.State.READY)) {
                Thread.onSpinWait();
            }
            assertThat(infer(server, "near")).containsExactly(7f);
            assertThat(server.isReady()).as("not all models are known").isFalse();

            storage.clear("silent");
            server.awaitModels();
            assertThat(index(server)).containsExactly("far 1 READY", "far 2 READY", "near 1 READY");
            assertThat(server.isReady()).isTrue();
        }
    }

    /** A server that need not have all models starts without them, and loads them when they are known. */
    @Tag("slow")
    @Test
    void startsWithoutASilentStorage() throws Exception {
        storage.set("silent");
        try (NereidServer server = NereidServer.start(tolerant(poll()))) {
            assertThat(index(server)).containsExactly("near 1 READY");
            assertThat(server.isReady()).isTrue();
            assertThatThrownBy(server::awaitModels)
                    .hasMessage("failed to load all models:\n  remote model repositories: not listed after 20 ms (their"
                            + " models are loaded as soon as they are)");

            storage.clear("silent");
            awaitIndex(server, "far 1 READY", "far 2 READY", "near 1 READY");
        }
    }

    @Test
    void followsLocalModelsWhileTheStorageIsDown() throws Exception {
        try (NereidServer server = NereidServer.start(poll())) {
            awaitIndex(server, "far 1 READY", "far 2 READY", "near 1 READY");
            storage.set("down");
            models.recording("new", "");
            awaitIndex(server, "far 1 READY", "far 2 READY", "near 1 READY", "new 1 READY");
            assertThat(infer(server, "far")).containsExactly(7f);

            storage.clear("down");
            storage.put("far/3/model.bin", "three");
            awaitIndex(server, "far 1 READY", "far 2 READY", "far 3 READY", "near 1 READY", "new 1 READY");
        }
    }

    @Test
    void servesNoModelThatIsInBoth() throws Exception {
        storage.models().recording("near", "");
        try (NereidServer server = NereidServer.start(tolerant(options()))) {
            awaitIndex(
                    server, "far 1 READY", "far 2 READY", "near UNAVAILABLE model appears in two or more repositories");
        }
    }

    private static List<Float> infer(NereidServer server, String model) {
        return RecordingObserver.to(server, model, 7).response().values();
    }

    private List<String> loads() throws IOException {
        return Files.readAllLines(directory.resolve("events")).stream()
                .filter(event -> event.startsWith("load "))
                .map(event -> event.substring(5, event.indexOf(' ', 5)))
                .toList();
    }

    private static ServerOptions tolerant(ServerOptions options) {
        return options.with(o -> o.exitOnError = false);
    }

    private ServerOptions explicit(String... startup) {
        return options().with(o -> o.explicit(startup));
    }

    private ServerOptions poll() {
        return options().with(o -> {
            o.controlMode = ModelControlMode.POLL;
            o.pollInterval = Duration.ofMillis(20);
            o.stabilityWindow = Duration.ofMillis(20);
        });
    }

    private ServerOptions options() {
        return storage.addTo(ServerOptions.of(models.root())
                .withPlugins(plugins)
                .withBackendSetting(
                        "recording", "events", directory.resolve("events").toString())
                .with(o -> o.processors = 2));
    }
}
