package dev.nereid.compatibility;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.nereid.distribution.testing.InstalledServer;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The system's gRPC for Python. */
final class PythonIT {
    @TempDir
    private static Path models;

    @TempDir
    private static Path stubs;

    private static PythonTests tests;
    private static InstalledServer server;

    @BeforeAll
    static void start() throws IOException {
        tests = PythonTests.prepare(stubs);
        server = Echo.serve(models, "--allow-client-shm=true");
    }

    @AfterAll
    static void stop() {
        if (server != null) {
            server.close();
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"test_inference", "test_models", "test_streaming"})
    void passes(String module) throws IOException {
        tests.run(module, server, Map.of());
    }

    @Test
    void passesInSharedMemory() throws IOException {
        assumeTrue(Files.isWritable(Path.of("/dev/shm")), "missing: /dev/shm");
        tests.run("test_shared_memory", server, Map.of());
    }
}
