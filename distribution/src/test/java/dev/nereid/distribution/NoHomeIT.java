package dev.nereid.distribution;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.distribution.testing.InstalledServer;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The installed server without a home directory, as in many containers. */
@Tag("slow")
final class NoHomeIT {
    @ParameterizedTest
    @ValueSource(strings = {"", "/nonexistent"})
    void startsAndServes(String home) throws IOException, InterruptedException {
        String out = demo(home.isEmpty() ? Optional.empty() : Optional.of(home));

        assertThat(out)
                .contains("over HTTP: seven", "over gRPC: seven")
                .containsPattern("(?m)^tensors +\\d+ +--tensor-memory-pool-byte-size$");
    }

    @Test
    void namesFlagAndVariableOfTheCacheDirectory() throws IOException, InterruptedException {
        String out = demo(Optional.empty(), "--plugin-cache-directory=/dev/null/cache");

        assertThat(out)
                .contains("cache directory: cannot be created in /dev/null/cache")
                .contains("--plugin-cache-directory or NEREID_PLUGIN_CACHE_DIRECTORY");
    }

    private static String demo(Optional<String> home, String... flags) throws IOException, InterruptedException {
        ProcessBuilder builder = new ProcessBuilder(
                InstalledServer.HOME.resolve("bin/nereid").toString(),
                "demo",
                "--exit",
                "--http-port=0",
                "--grpc-port=0",
                "--metrics-port=0");
        builder.command().addAll(List.of(flags));
        builder.environment().remove("XDG_CACHE_HOME");
        builder.environment().remove("HOME");
        home.ifPresent(value -> builder.environment().put("HOME", value));
        Process process = builder.redirectErrorStream(true).start();
        process.getOutputStream().close();
        String out = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(process.waitFor(1, TimeUnit.MINUTES)).isTrue();
        return out;
    }
}
