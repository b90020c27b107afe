package dev.nereid.compatibility;

import dev.nereid.distribution.testing.InstalledServer;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Clients that compress requests and accept compressed responses, at each compression level of the server. */
final class CompressionIT {
    @TempDir
    private Path models;

    @TempDir
    private Path stubs;

    @Test
    void speaksHttp() throws IOException {
        run("test_compression.OverHttp");
    }

    @ParameterizedTest
    @ValueSource(strings = {"none", "low", "high"})
    void speaksGrpc(String level) throws IOException {
        run("test_compression.OverGrpc", "--grpc-infer-response-compression-level=" + level);
    }

    private void run(String test, String... flags) throws IOException {
        PythonTests tests = PythonTests.prepare(stubs);
        try (InstalledServer server = Echo.serve(models, flags)) {
            tests.run(test, server, Map.of());
        }
    }
}
