package dev.nereid.compatibility;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.nereid.distribution.InstalledServer;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The system's gRPC for Python, with stubs made of the server's own protocol files: the tests in {@code src/test/python}. */
final class PythonIT {
    private static final Path PROTOCOL = InstalledServer.CHECKOUT.resolve("api/src/main/proto");
    private static final Path TESTS = InstalledServer.CHECKOUT.resolve("compatibility/src/test/python");
    /** The system's, which others on the path may hide. */
    private static final String PYTHON = Files.exists(Path.of("/usr/bin/python3")) ? "/usr/bin/python3" : "python3";

    @TempDir
    private static Path models;

    @TempDir
    private static Path stubs;

    private static InstalledServer server;

    @BeforeAll
    static void start() throws IOException {
        Program.assumeRuns(PYTHON, "-c", "import grpc, google.protobuf");
        Program.assumeRuns("protoc", "--version");
        makeStubs();
        server = Echo.serve(models);
    }

    @AfterAll
    static void stop() {
        if (server != null) {
            server.close();
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"test_inference", "test_models"})
    void passes(String module) throws IOException {
        Map<String, String> environment = Map.of(
                "PYTHONPATH",
                stubs + ":" + TESTS,
                "PYTHONDONTWRITEBYTECODE",
                "1",
                "NEREID_GRPC",
                server.address("gRPC"));

        Program.Result result = Program.run(environment, List.of(PYTHON, "-m", "unittest", "-v", module));

        assertThat(result.status()).as(result.out()).isZero();
        assertThat(result.out()).contains("\nOK");
    }

    private static void makeStubs() throws IOException {
        Optional<Path> plugin = Stream.of(System.getenv("PATH").split(":"))
                .map(folder -> Path.of(folder, "grpc_python_plugin"))
                .filter(Files::isExecutable)
                .findFirst();
        assumeTrue(plugin.isPresent(), "not installed: grpc_python_plugin");
        Program.Result result = Program.run(
                Map.of(),
                List.of(
                        "protoc",
                        "--plugin=protoc-gen-grpc_python=" + plugin.get(),
                        "-I" + PROTOCOL,
                        "--python_out=" + stubs,
                        "--grpc_python_out=" + stubs,
                        "inference/grpc_service.proto",
                        "inference/model_config.proto"));
        assertThat(result.status()).as(result.out()).isZero();
    }
}
