package dev.nereid.distribution.golden;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import dev.nereid.distribution.testing.InstalledServer;
import dev.nereid.distribution.testing.PythonProgram;
import dev.nereid.distribution.testing.TestPaths;
import java.io.IOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The recorded exchanges of the reference server's Python backend, sent to the installed server with the recorded models.
 * Needs the record, and Python with NumPy. Allowed differences are listed in {@code
 * docs/compatibility/deviations-python.txt}.
 */
@Timeout(300)
@Tag("slow")
final class PythonGoldenIT {
    @TempDir
    private static Path models;

    private static Path golden;
    private static Map<String, Long> before;
    private static InstalledServer server;

    /** Some models are made to fail their load. */
    @BeforeAll
    static void serveTheRecordedModels() throws IOException {
        golden = TestPaths.shared("golden");
        assumeTrue(Files.isDirectory(golden.resolve("python")), "shared/golden/python is not there");
        String python = PythonProgram.withNumPy();
        copy(golden.resolve("python/models"), models);
        before = files(models);
        server = InstalledServer.serve(
                models,
                "--exit-on-error=false",
                "--strict-readiness=false",
                "--backend-config=python,executable=" + python);
    }

    @AfterAll
    static void stop() {
        if (server != null) {
            server.close();
        }
    }

    /** The sections PY6 and PY7 depend on the order of their cases, which this keeps. */
    @ParameterizedTest
    @ValueSource(strings = {"PY1", "PY2", "PY3", "PY4", "PY5", "PY6", "PY7"})
    void respondsAsRecorded(String section) throws IOException, InterruptedException {
        Process replay = new ProcessBuilder(List.of(
                        "python3",
                        golden.resolve("replay.py").toString(),
                        golden.resolve("python/http.jsonl").toString(),
                        "--port=" + URI.create(server.address("HTTP")).getPort(),
                        "--metrics-port="
                                + URI.create(server.address("metrics")).getPort(),
                        "--section=" + section,
                        "--timeout=30",
                        "--verbose",
                        "--deviations=" + InstalledServer.CHECKOUT.resolve("docs/compatibility/deviations-python.txt")))
                .redirectErrorStream(true)
                .start();
        String report = new String(replay.getInputStream().readAllBytes(), StandardCharsets.UTF_8);

        assertThat(replay.waitFor()).as(report).isZero();
        assertThat(report).as("a section with cases").doesNotContain("same 0, different 0, accepted 0");
    }

    /** The record cuts the reasons where paths begin. */
    @Test
    void loadsFailAsRecorded() throws Exception {
        JsonObject recorded = JsonParser.parseString(Files.readString(golden.resolve("python/loads.json")))
                .getAsJsonObject();
        JsonArray index = JsonParser.parseString(
                        server.post("/v2/repository/index", "{}").body())
                .getAsJsonArray();
        Map<String, String> reasons = new TreeMap<>();
        for (JsonElement entry : index) {
            JsonObject model = entry.getAsJsonObject();
            reasons.put(
                    model.get("name").getAsString(),
                    model.has("reason") ? model.get("reason").getAsString() : "");
        }

        assertThat(recorded.entrySet())
                .isNotEmpty()
                .allSatisfy(load -> assertThat(reasons.get(load.getKey()))
                        .as(load.getKey())
                        .startsWith(load.getValue().getAsString()));
    }

    /** Byte code in a repository would look like a change of it. */
    @Test
    void theRepositoryStaysAsItWas() throws IOException {
        assertThat(files(models)).isEqualTo(before);
    }

    private static Map<String, Long> files(Path directory) throws IOException {
        Map<String, Long> found = new TreeMap<>();
        try (Stream<Path> paths = Files.walk(directory)) {
            for (Path path : (Iterable<Path>) paths::iterator) {
                found.put(
                        directory.relativize(path).toString(),
                        Files.getLastModifiedTime(path).toMillis());
            }
        }
        return found;
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
}
