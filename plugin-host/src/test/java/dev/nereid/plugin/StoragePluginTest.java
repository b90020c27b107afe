package dev.nereid.plugin;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.plugin.jar.SpiVersion;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.storage.ModelStorage;
import dev.nereid.spi.storage.StoragePage;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class StoragePluginTest {
    private static final String SERVICE = "META-INF/services/dev.nereid.spi.storage.StorageProvider";

    private static final String SOURCE = """
            package attic;

            import dev.nereid.spi.BackendException;
            import dev.nereid.spi.ErrorCode;
            import dev.nereid.spi.storage.*;
            import java.io.*;
            import java.nio.file.Path;
            import java.time.Instant;
            import java.util.*;

            public final class Attic implements StorageProvider {
                public String scheme() {
                    return "attic";
                }

                public ModelStorage open(StorageContext context) {
                    if (context.url().endsWith("/")) {
                        throw new BackendException(ErrorCode.INVALID_ARGUMENT, "slash at the end");
                    }
                    return new ModelStorage() {
                        public StoragePage list(String prefix, String continuation) {
                            String loader = Thread.currentThread().getContextClassLoader().getName();
                            String key = loader + context.logger().getName() + context.environment().get("BOX");
                            return StoragePage.last(List.of(new StoredObject(key, 3, "e", Instant.EPOCH)));
                        }

                        public void read(StoredObject object, OutputStream content) {
                            try {
                                content.write(new byte[] {'a', 'b', 'c'});
                            } catch (IOException e) {
                                throw new UncheckedIOException(e);
                            }
                        }

                        public Optional<Path> localDirectory() {
                            return Optional.of(Path.of("loft"));
                        }

                        public void close() {
                            throw new IllegalStateException("not today");
                        }
                    };
                }
            }
            """;

    @TempDir
    private Path directory;

    @Test
    void opensARepositoryBehindABoundary() {
        PluginJar.of(SOURCE).entry(SERVICE, "attic.Attic").write(directory.resolve("attic.jar"));

        try (ModelStorage storage = open("attic://box/models")) {
            StoragePage page = storage.list("", "");
            assertThat(page.objects())
                    .singleElement()
                    .satisfies(object ->
                            assertThat(object.key()).isEqualTo("plugin attic" + "nereid.storage.attic" + "7"));
            assertThat(storage.localDirectory()).contains(Path.of("loft"));
            ByteArrayOutputStream content = new ByteArrayOutputStream();
            storage.read(page.objects().getFirst(), content);
            assertThat(content.toString(StandardCharsets.UTF_8)).isEqualTo("abc");
        }
    }

    @Test
    void whatAStorageMustNotThrowBecomesAnInternalError() {
        PluginJar.of(SOURCE).entry(SERVICE, "attic.Attic").write(directory.resolve("attic.jar"));
        OutputStream broken = new OutputStream() {
            @Override
            public void write(int value) throws IOException {
                throw new IOException("full");
            }
        };

        try (ModelStorage storage = open("attic://box/models")) {
            StoragePage page = storage.list("", "");
            assertThatThrownBy(() -> storage.read(page.objects().getFirst(), broken))
                    .isInstanceOfSatisfying(
                            BackendException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INTERNAL));
        }
    }

    @Test
    void namesThePluginThatIsMissing() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> open("s3://bucket/models"))
                .withMessage("model repository 's3://bucket/models': no plugin for 's3://' (expected: a directory, or"
                        + " the URL of an installed storage); install the plugin nereid-storage-s3 as directory 's3'"
                        + " in one of [" + directory + "]");
    }

    /** It names no plugin that does not exist. */
    @ParameterizedTest
    @ValueSource(strings = {"gs", "as", "hdfs"})
    void namesNoPluginOfAnotherScheme(String scheme) {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> open(scheme + "://bucket/models"))
                .withMessage("model repository '" + scheme + "://bucket/models': no plugin for '" + scheme
                        + "://' (expected: a directory, or the URL of an installed storage); Nereid has a plugin for"
                        + " 's3://' alone: copy the models to a directory, or install a plugin of others as directory '"
                        + scheme + "' in one of [" + directory + "]");
    }

    @Test
    void reportsWhatTheStorageRefuses() {
        PluginJar.of(SOURCE).entry(SERVICE, "attic.Attic").write(directory.resolve("attic.jar"));

        assertThatIllegalArgumentException()
                .isThrownBy(() -> open("attic://box/"))
                .withMessage("model repository 'attic://box/': slash at the end");
    }

    @Test
    void refusesAPluginOfAnotherKindOrName() {
        PluginJar.of(SOURCE).write(directory.resolve("attic.jar"));
        PluginJar.of(SOURCE).entry(SERVICE, "attic.Attic").write(directory.resolve("cellar.jar"));

        assertThatIllegalArgumentException()
                .isThrownBy(() -> open("attic://box"))
                .withMessageContaining("no provider");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> open("cellar://box"))
                .withMessageContaining("0 providers of its name");
    }

    private ModelStorage open(String url) {
        return StoragePlugin.open(
                url,
                Map.of("BOX", "7"),
                List.of(directory),
                new PluginEnvironment(new SpiVersion(1, 0), Map.of(), directory.resolve(".cache"), 1, Map.of()));
    }
}
