package dev.nereid.server;

import static dev.nereid.server.TestControl.index;
import static dev.nereid.server.TestControl.load;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.ModelRef;
import dev.nereid.server.options.ModelControlMode;
import dev.nereid.server.options.ServerOptions;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Models whose directories and files are links: those that stay in the repository are followed, others refused. */
@Timeout(120)
final class LinkedModelTest {
    private static final String OUTSIDE =
            " (expected: a path below its directory, without '..' and links that leave it):"
                    + " copy what the link leads to, or mount it below the directory";

    @TempDir
    private Path directory;

    private Path plugins;
    private Path root;
    private TestModels elsewhere;

    @BeforeEach
    void setUp() throws IOException {
        plugins = Files.createDirectories(directory.resolve("plugins"));
        root = Files.createDirectories(directory.resolve("models"));
        elsewhere = new TestModels(Files.createDirectories(directory.resolve("elsewhere")));
        TestPlugins.recording(plugins);
    }

    /** Writes a directory as a volume of Kubernetes, all of whose names are links into the newest copy. */
    private void mount(Path volume, String copy, int maxBatchSize) throws IOException {
        Path content = Files.createDirectories(volume.resolve(copy));
        Files.createDirectories(content.resolve("1"));
        Files.writeString(content.resolve("1/model.bin"), "model of " + copy);
        Files.writeString(content.resolve("labels.txt"), "one\ntwo\n");
        Files.writeString(content.resolve("config.pbtxt"), """
                backend: "recording"
                max_batch_size: %d
                input { name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] }
                output { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] label_filename: "labels.txt" }
                instance_group { count: 1 kind: KIND_CPU }
                """.formatted(maxBatchSize));
        Path data = volume.resolve("..data");
        Files.createSymbolicLink(volume.resolve("..data_tmp"), Path.of(copy));
        Files.move(volume.resolve("..data_tmp"), data, StandardCopyOption.ATOMIC_MOVE);
        for (String name : List.of("1", "labels.txt", "config.pbtxt")) {
            if (!Files.isSymbolicLink(volume.resolve(name))) {
                Files.createSymbolicLink(volume.resolve(name), Path.of("..data", name));
            }
        }
    }

    @Test
    void servesAVolumeOfKubernetes() throws Exception {
        mount(root.resolve("m"), "..2026_11_23_1", 4);
        try (NereidServer server = NereidServer.start(options(ModelControlMode.EXPLICIT))) {
            load(server, "m");
            assertThat(index(server)).containsExactly("m 1 READY");
            assertThat(RecordingObserver.to(server, "m", 7).response().values()).containsExactly(7f);
            assertThat(maxBatchSize(server)).isEqualTo(4);

            mount(root.resolve("m"), "..2026_11_23_2", 8);
            load(server, "m");
            assertThat(maxBatchSize(server)).isEqualTo(8);
        }
    }

    @Test
    void followsAVolumeOfKubernetes() throws Exception {
        mount(root.resolve("m"), "..2026_11_23_1", 4);
        try (NereidServer server = NereidServer.start(options(ModelControlMode.POLL))) {
            assertThat(index(server)).containsExactly("m 1 READY");
            mount(root.resolve("m"), "..2026_11_23_2", 8);
            while (maxBatchSize(server) != 8) {
                Thread.onSpinWait();
            }
            assertThat(index(server)).containsExactly("m 1 READY");
        }
    }

    /** The repository itself is the volume. */
    @Test
    void servesModelsThatAreLinksWithinTheRepository() throws Exception {
        Path copy = Files.createDirectories(root.resolve("..2026_11_23"));
        new TestModels(copy).recording("m", "");
        Files.createSymbolicLink(root.resolve("..data"), copy.getFileName());
        Files.createSymbolicLink(root.resolve("m"), Path.of("..data/m"));
        try (NereidServer server = NereidServer.start(options(ModelControlMode.NONE))) {
            assertThat(index(server)).containsExactly("m 1 READY");
        }
    }

    /** As git-annex keeps large files. */
    @Test
    void servesFilesThatAreLinksWithinTheRepository() throws Exception {
        new TestModels(root).recording("m", "");
        Files.createDirectories(root.resolve(".git/annex/objects"));
        Files.writeString(root.resolve(".git/annex/objects/abc"), "a large model");
        Files.createSymbolicLink(root.resolve("m/1/model.bin"), Path.of("../../.git/annex/objects/abc"));
        Files.createSymbolicLink(root.resolve("m/2"), Path.of("1"));
        try (NereidServer server = NereidServer.start(options(ModelControlMode.NONE))) {
            assertThat(index(server)).containsExactly("m 2 READY");
        }
    }

    @Test
    void refusesAVersionOutsideOfTheRepository() throws Exception {
        elsewhere.recording("m", "", 3);
        new TestModels(root).recording("m", "");
        Files.createSymbolicLink(root.resolve("m/3"), elsewhere.root().resolve("m/3"));

        assertRefused("model file: 'm/3'" + OUTSIDE);
    }

    @Test
    void refusesAModelFileOutsideOfTheRepository() throws Exception {
        elsewhere.recording("m", "");
        new TestModels(root).recording("m", "");
        Files.writeString(elsewhere.root().resolve("model.bin"), "secret");
        Files.createSymbolicLink(root.resolve("m/1/model.bin"), elsewhere.root().resolve("model.bin"));

        assertRefused("model file: 'm/1/model.bin'" + OUTSIDE);
    }

    @Test
    void refusesADeviceAsModelFile() throws Exception {
        new TestModels(root).recording("m", "");
        Files.createSymbolicLink(root.resolve("m/1/model.bin"), Path.of("/dev/zero"));

        assertRefused("model file: 'm/1/model.bin'" + OUTSIDE);
    }

    @Test
    void refusesAConfigurationOutsideOfTheRepository() throws Exception {
        elsewhere.recording("m", "");
        Files.createDirectories(root.resolve("m/1"));
        Files.createSymbolicLink(
                root.resolve("m/config.pbtxt"), elsewhere.root().resolve("m/config.pbtxt"));

        assertRefused("model configuration: 'm/config.pbtxt'" + OUTSIDE);
    }

    private void assertRefused(String reason) throws Exception {
        try (NereidServer server = NereidServer.start(options(ModelControlMode.EXPLICIT))) {
            assertThatThrownBy(() -> load(server, "m")).hasMessageEndingWith(reason);
            assertThat(index(server)).singleElement().asString().endsWith(reason);
        }
        try (NereidServer server =
                NereidServer.start(options(ModelControlMode.POLL).with(o -> o.exitOnError = false))) {
            assertThat(index(server)).singleElement().asString().endsWith(reason);
        }
    }

    private static int maxBatchSize(NereidServer server) {
        return server.models().config(ModelRef.latest("m")).getMaxBatchSize();
    }

    private ServerOptions options(ModelControlMode mode) {
        return ServerOptions.of(root)
                .withPlugins(plugins)
                .withBackendSetting(
                        "recording", "events", directory.resolve("events").toString())
                .with(o -> {
                    o.controlMode = mode;
                    o.pollInterval = Duration.ofMillis(20);
                    o.stabilityWindow = Duration.ofMillis(20);
                    o.processors = 2;
                });
    }
}
