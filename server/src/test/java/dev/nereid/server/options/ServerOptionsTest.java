package dev.nereid.server.options;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests the options of embedding programs. */
final class ServerOptionsTest {
    @TempDir
    private Path directory;

    @Test
    void addsPluginsInTheOrderOfTheCalls() throws IOException {
        Path own = Files.createDirectory(directory.resolve("own"));
        Path bundled = Files.createDirectory(directory.resolve("bundled"));
        Path last = Files.createDirectory(directory.resolve("last"));

        ServerOptions options = ServerOptions.of(directory).withPlugins(own, bundled);

        assertThat(options.withPlugins(last).withPlugins(own).directories().plugins())
                .containsExactly(own, bundled, last);
        assertThat(options.withPlugins().directories().plugins()).containsExactly(own, bundled);
        assertThatThrownBy(() -> options.withPlugins(directory.resolve("none")))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("none");
    }

    @Test
    void leavesSecretsOutOfTheEnvironment() {
        ServerOptions options = ServerOptions.of(directory)
                .withEnvironment(Map.of(
                        "PATH", "/bin",
                        "AWS_SECRET_ACCESS_KEY", "s",
                        "AWS_REGION", "r",
                        "TRITONCACHE_REDIS_PASSWORD", "p"));

        assertThat(ServerOptions.of(directory).environment()).isEmpty();
        assertThat(options.withModels(models -> models)
                        .withMemory(memory -> memory)
                        .withLifecycle(lifecycle -> lifecycle)
                        .withBackendSetting("b", "k", "v")
                        .withProviders()
                        .environment())
                .isEqualTo(Map.of("PATH", "/bin", "AWS_REGION", "r"));
    }
}
