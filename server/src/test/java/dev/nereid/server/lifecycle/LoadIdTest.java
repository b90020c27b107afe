package dev.nereid.server.lifecycle;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.repository.ModelDirectory;
import dev.nereid.server.lifecycle.FileIdentity.LoadId;
import inference.ModelConfig;
import inference.ModelInstanceGroup;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests which changes make cached responses belong to another load. */
final class LoadIdTest {
    @TempDir
    private Path root;

    private final ModelConfig config =
            ModelConfig.newBuilder().setName("m").setBackend("b").build();

    @BeforeEach
    void setUp() throws IOException {
        write("m/1/model", "one");
        write("m/2/model", "two");
        write("m/labels", "a");
    }

    @Test
    void dependsOnTheContentOfAVersion() throws IOException {
        String before = id(config, 1);
        assertThat(before).hasSize(64).isEqualTo(id(config, 1)).isNotEqualTo(id(config, 2));

        write("m/1/model", "oNe");
        assertThat(id(config, 1)).isNotEqualTo(before);
        write("m/1/model", "one");
        assertThat(id(config, 1)).isEqualTo(before);
        write("m/2/model", "three");
        assertThat(id(config, 1)).isEqualTo(before);
        write("m/labels", "b");
        assertThat(id(config, 1)).isNotEqualTo(before);
    }

    @Test
    void dependsOnNamesAndLengths() throws IOException {
        String before = id(config, 1);
        Files.move(root.resolve("m/1/model"), root.resolve("m/1/other"));
        String renamed = id(config, 1);
        write("m/1/other", "on");
        write("m/1/p", "e");

        assertThat(renamed).isNotEqualTo(before);
        assertThat(id(config, 1)).isNotEqualTo(renamed);
    }

    @Test
    void dependsOnTheConfigurationWithoutItsInstances() {
        String before = id(config, 1);

        assertThat(id(config.toBuilder().setMaxBatchSize(4).build(), 1)).isNotEqualTo(before);
        assertThat(id(
                        config.toBuilder()
                                .addInstanceGroup(
                                        ModelInstanceGroup.newBuilder().setCount(3))
                                .build(),
                        1))
                .isEqualTo(before);
    }

    @Test
    void dependsOnThePlugin() {
        assertThat(LoadId.of(config, "4567", new ModelDirectory(root, "m"), 1)).isNotEqualTo(id(config, 1));
    }

    /** As in a repository whose version directories lie elsewhere, and in a mounted Kubernetes volume. */
    @Test
    void dependsOnWhatLinksLeadTo() throws IOException {
        write("store/model", "one");
        Files.createDirectories(root.resolve("linked/..data"));
        write("linked/..data/labels", "not twice");
        Files.createSymbolicLink(root.resolve("linked/1"), root.resolve("store"));
        Files.createSymbolicLink(root.resolve("linked/labels"), root.resolve("m/labels"));
        ModelDirectory linked = new ModelDirectory(root, "linked");
        String before = LoadId.of(config, "0123", linked, 1);
        assertThat(before).isEqualTo(id(config, 1));

        write("store/model", "oNe");
        assertThat(LoadId.of(config, "0123", linked, 1)).isNotEqualTo(before);
    }

    private String id(ModelConfig changed, long version) {
        return LoadId.of(changed, "0123", new ModelDirectory(root, "m"), version);
    }

    private void write(String file, String text) throws IOException {
        Path path = root.resolve(file);
        Files.createDirectories(path.getParent());
        Files.writeString(path, text);
    }
}
