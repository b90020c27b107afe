package dev.nereid.server.options;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
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
}
