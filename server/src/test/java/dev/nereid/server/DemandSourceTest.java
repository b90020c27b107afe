package dev.nereid.server;

import static dev.nereid.server.DemandFixture.await;
import static dev.nereid.server.DemandFixture.infer;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelRef;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.spi.ErrorCode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Models on demand from a remote storage, and behind a repository agent: loaded, evicted, and back again. */
@Timeout(120)
final class DemandSourceTest {
    private static final String CHECKED = DemandFixture.MEGABYTE
            + "model_repository_agents { agents { name: \"checksum\" parameters {"
            + " key: \"MD5:1/weights\" value: \"900150983cd24fb0d6963f7d28e17f72\" } } }\n";

    @TempDir
    private Path directory;

    private DemandFixture fixture;
    private TestStorage storage;
    private ServerOptions options;

    @BeforeEach
    void setUp() throws IOException {
        fixture = DemandFixture.in(directory);
        storage = new TestStorage(Files.createDirectories(directory.resolve("storage")));
        fixture.models().recording("near", DemandFixture.MEGABYTE);
        options = fixture.options(
                storage.addTo(ServerOptions.of(fixture.models().root())), o -> o.memoryBudget = 1_000_000);
    }

    @Test
    void bringsAModelOfAStorageBackFromItsCopy() throws Exception {
        storage.models().recording("far", DemandFixture.MEGABYTE);
        storage.put("far/1/model.bin", "one");
        try (NereidServer server = NereidServer.start(options)) {
            assertThat(server.models().isReady(ModelRef.latest("far"))).isTrue();
            assertThat(infer(server, "far", 1)).containsExactly(1f);
            assertThat(storage.reads()).containsExactly("far/1/model.bin", "far/config.pbtxt");
            assertThat(infer(server, "near", 1)).containsExactly(1f);
            assertThat(server.demand().orElseThrow().evictions()).isEqualTo(1);

            assertThat(infer(server, "far", 2)).containsExactly(2f);

            assertThat(loads()).isEqualTo("far near far");
            assertThat(storage.reads()).as("nothing is downloaded again").isEmpty();

            infer(server, "near", 1);
            storage.put("far/1/model.bin", "another");
            assertThat(infer(server, "far", 3)).containsExactly(3f);
            assertThat(storage.reads()).containsExactly("far/1/model.bin");
        }
    }

    /** A model that cannot be compared with the storage is not served. It comes back automatically with the storage. */
    @Tag("slow")
    @Test
    void refusesRequestsForAnEvictedModelWhileItsStorageIsDown() throws Exception {
        storage.models().recording("far", DemandFixture.MEGABYTE);
        storage.put("far/1/model.bin", "one");
        try (NereidServer server = NereidServer.start(options)) {
            assertThat(infer(server, "far", 1)).containsExactly(1f);
            storage.set("down");
            assertThat(infer(server, "far", 1)).as("while it is loaded").containsExactly(1f);
            assertThat(infer(server, "near", 1)).containsExactly(1f);

            RecordingObserver refused = RecordingObserver.to(server, "far", 1);
            refused.await();

            assertThat(refused.error().code()).isEqualTo(ErrorCode.UNAVAILABLE);
            assertThat(refused.error()).hasMessageContaining("the disk is down");
            assertThat(infer(server, "near", 2)).containsExactly(2f);
            storage.clear("down");
            await(() -> isServed(server, "far"));
        }
    }

    @Tag("slow")
    @Test
    void checksAModelAnewWhenItComesBack() throws Exception {
        fixture.models().recording("checked", CHECKED);
        Path weights = Files.writeString(fixture.models().root().resolve("checked/1/weights"), "abc");
        try (NereidServer server = NereidServer.start(options)) {
            assertThat(infer(server, "checked", 1)).containsExactly(1f);
            infer(server, "near", 1);
            assertThat(infer(server, "checked", 2)).containsExactly(2f);
            assertThat(loads()).isEqualTo("checked near checked");
            infer(server, "near", 1);
            Files.writeString(weights, "abd");

            RecordingObserver refused = RecordingObserver.to(server, "checked", 1);
            refused.await();

            assertThat(refused.error()).hasMessageContaining("Mismatched MD5 hash for file 1/weights");
            assertThat(infer(server, "near", 2)).containsExactly(2f);
            Files.writeString(weights, "abc");
            await(() -> isServed(server, "checked"));
        }
    }

    @Test
    void refusesAModelOfWhichTheChecksumIsWrongAtTheStart() throws Exception {
        fixture.models().recording("checked", CHECKED);
        Files.writeString(fixture.models().root().resolve("checked/1/weights"), "abd");
        ServerOptions tolerant = options.with(o -> o.exitOnError = false);
        try (NereidServer server = NereidServer.start(tolerant)) {
            assertThat(TestControl.index(server))
                    .anyMatch(line -> line.startsWith("checked UNAVAILABLE") && line.contains("Mismatched MD5 hash"));
            assertThat(infer(server, "near", 1)).containsExactly(1f);
        }
    }

    private static boolean isServed(NereidServer server, String model) throws InferenceException {
        RecordingObserver observer = RecordingObserver.to(server, model, 1);
        observer.await();
        return !observer.isFailed();
    }

    private String loads() throws IOException {
        return String.join(
                " ",
                fixture.loads().stream()
                        .map(load -> load.substring("load ".length(), load.indexOf('/')))
                        .toList());
    }
}
