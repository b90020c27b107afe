package dev.nereid.compatibility;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.nereid.distribution.testing.InstalledServer;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.stream.Stream;

/** The tests in {@code src/test/python}, with stubs generated from the server's own protocol files. Immutable. */
final class PythonTests {
    private static final Path PROTOCOL = InstalledServer.CHECKOUT.resolve("api/src/main/proto");
    private static final Path TESTS = InstalledServer.CHECKOUT.resolve("checks/compatibility/src/test/python");
    /** The system's, which others on the path may hide. */
    private static final String PYTHON = Files.exists(Path.of("/usr/bin/python3")) ? "/usr/bin/python3" : "python3";

    private final Path stubs;

    private PythonTests(Path stubs) {
        this.stubs = stubs;
    }

    /** Generates the stubs in a directory, and skips the test if the tools for it are missing. */
    static PythonTests prepare(Path stubs) throws IOException {
        Program.assumeRuns(PYTHON, "-c", "import grpc, google.protobuf");
        Program.assumeRuns("protoc", "--version");
        Optional<Path> plugin = Stream.of(System.getenv("PATH").split(":"))
                .map(directory -> Path.of(directory, "grpc_python_plugin"))
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
        return new PythonTests(stubs);
    }

    /** Runs the tests of a file. */
    void run(String module, InstalledServer server, Map<String, String> more) throws IOException {
        Map<String, String> environment = new TreeMap<>(more);
        environment.put("PYTHONPATH", stubs + ":" + TESTS);
        environment.put("PYTHONDONTWRITEBYTECODE", "1");
        environment.put("NEREID_GRPC", server.address("gRPC"));
        environment.put("NEREID_HTTP", server.address("HTTP"));

        Program.Result result = Program.run(environment, List.of(PYTHON, "-m", "unittest", "-v", module));

        assertThat(result.status()).as(result.out()).isZero();
        assertThat(result.out()).contains("\nOK");
    }
}
