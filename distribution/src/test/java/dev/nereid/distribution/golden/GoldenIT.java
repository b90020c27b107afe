package dev.nereid.distribution.golden;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import dev.nereid.distribution.testing.InstalledServer;
import java.io.IOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The recorded exchanges of the reference server, sent to the installed one. Needs the specification and Python.
 *
 * <p>One section is left out: H13 is about settings of traces and logs.
 */
@Tag("slow")
final class GoldenIT {
    private static final Path GOLDEN = InstalledServer.CHECKOUT.resolve("../shared/golden");

    @TempDir
    private static Path models;

    private static InstalledServer server;

    /** Models with unsupported schedulers fail to load, and receive no requests. */
    @BeforeAll
    static void serveTheRecordedModels() throws IOException, InterruptedException {
        assumeThat(GOLDEN).as("the recorded exchanges").isDirectory();
        assumeThat(isInstalled("python3")).as("python3 is installed").isTrue();
        copy(GOLDEN.resolve("models"), models);
        server = InstalledServer.serve(
                models,
                "--exit-on-error=false",
                "--strict-readiness=false",
                "--backend-directory=" + InstalledServer.CHECKOUT.resolve("examples/plugins"));
    }

    @AfterAll
    static void stop() {
        if (server != null) {
            server.close();
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"H1.", "H2.", "H3.", "H4.", "H5.", "H6.", "H7.", "H8.", "H9.", "H11", "H12", "H14"})
    void respondsAsRecorded(String section) throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(List.of(
                "python3",
                GOLDEN.resolve("replay.py").toString(),
                GOLDEN.resolve("http.jsonl").toString(),
                "--port=" + URI.create(server.address("HTTP")).getPort(),
                "--metrics-port=" + URI.create(server.address("metrics")).getPort(),
                "--section=" + section,
                "--timeout=30"));
        Path deviations = InstalledServer.CHECKOUT.resolve("docs/compatibility/deviations.txt");
        if (Files.exists(deviations)) {
            command.add("--deviations=" + deviations);
        }

        Process replay = new ProcessBuilder(command).redirectErrorStream(true).start();
        String report = new String(replay.getInputStream().readAllBytes(), StandardCharsets.UTF_8);

        assertThat(replay.waitFor()).as(report).isZero();
    }

    private static void copy(Path from, Path to) throws IOException {
        try (Stream<Path> paths = Files.walk(from)) {
            for (Path path : (Iterable<Path>) paths::iterator) {
                Path target = to.resolve(from.relativize(path).toString());
                if (Files.isDirectory(path)) {
                    Files.createDirectories(target);
                } else {
                    Files.copy(path, target);
                }
            }
        }
    }

    private static boolean isInstalled(String program) throws InterruptedException {
        try {
            return new ProcessBuilder(program, "--version").start().waitFor() == 0;
        } catch (IOException e) {
            return false;
        }
    }
}
