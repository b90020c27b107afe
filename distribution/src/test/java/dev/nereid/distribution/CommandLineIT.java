package dev.nereid.distribution;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonParser;
import dev.nereid.distribution.testing.InstalledServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Errors of the installed command. */
@Tag("slow")
final class CommandLineIT {
    @TempDir
    private Path directory;

    @Test
    void printsTheVersionOfTheBuild() throws IOException, InterruptedException {
        InstalledServer.Result result = InstalledServer.run("--version");

        assertThat(result.status()).isZero();
        assertThat(result.out().lines().findFirst())
                .hasValueSatisfying(line -> assertThat(line).matches("nereid \\d+\\.\\d+\\.\\d+\\S*"));
        assertThat(result.err()).isEmpty();
    }

    @ParameterizedTest
    @CsvSource({"http, HTTP", "grpc, GRPC", "metrics, Metrics"})
    void namesThePortThatIsInUse(String name, String service) throws IOException, InterruptedException {
        try (ServerSocket taken = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            InstalledServer.Result result = serve(name, taken.getLocalPort());

            assertThat(result.status()).isNotZero();
            assertThat(result.out()).as("models that were loaded before").isEmpty();
            assertThat(lastLine(result.err()))
                    .isEqualTo(("nereid serve: failed to start %3$s service: Unavailable - Socket '127.0.0.1:%2$d'"
                                    + " already in use; --%1$s-port: %2$d (expected: a free port)")
                            .formatted(name, taken.getLocalPort(), service));
        }
    }

    @Test
    void aFailedStartIsALineOfTheLogForPrograms() throws IOException, InterruptedException {
        InstalledServer.Result result =
                InstalledServer.run("serve", "--model-repository=/nonexistent/models", "--log-format=json");

        assertThat(result.status()).isEqualTo(1);
        assertThat(result.err().lines())
                .isNotEmpty()
                .allSatisfy(line -> assertThat(line).startsWith("{\"").endsWith("}"));
        assertThat(lastLine(result.err()))
                .contains("\"level\":\"ERROR\"", "/nonexistent/models (expected: an existing directory)");
    }

    @Test
    void namesTheAddressThatIsNotOfThisMachine() throws IOException, InterruptedException {
        InstalledServer.Result result =
                InstalledServer.run("serve", "--model-repository=" + directory, "--http-address=192.0.2.1");

        assertThat(result.status()).isNotZero();
        assertThat(result.err().lines()).hasSize(1);
        assertThat(result.err()).startsWith("nereid serve: --http-port: 8000 (expected: an address of this machine");
    }

    @ParameterizedTest
    @ValueSource(strings = {"serve --wrong", "serve", "serve models", "serve --model-repository=nowhere", "walk"})
    void failsWithOneLineForAWrongCommandLine(String arguments) throws IOException, InterruptedException {
        InstalledServer.Result result = InstalledServer.run(arguments.split(" "));

        assertThat(result.status()).isNotZero();
        assertThat(result.err().lines()).hasSize(1);
        assertThat(result.out()).isEmpty();
    }

    @Test
    void namesModelsThatFailAndEnds() throws IOException, InterruptedException {
        breakModel("broken");

        InstalledServer.Result result = InstalledServer.run("serve", "--model-repository=" + directory);

        assertThat(result.status()).isNotZero();
        assertThat(lastLine(result.err()))
                .startsWith("nereid serve: models: broken (expected: every model loads; reasons in the table above)");
        assertThat(result.out())
                .containsPattern(
                        "(?m)^broken +(1|-) +UNAVAILABLE: Internal: failed to read text proto from .*config.pbtxt.*$");
    }

    /** The table of the models is no line of a log that programs read, so the last line has the reasons. */
    @Test
    void aFailedStartWritesJsonAloneIfTheLogIsJson() throws IOException, InterruptedException {
        breakModel("broken");

        InstalledServer.Result result =
                InstalledServer.run("serve", "--log-format=json", "--model-repository=" + directory);

        assertThat(result.status()).isEqualTo(1);
        assertThat(result.out()).isEmpty();
        assertThat(result.err().lines())
                .isNotEmpty()
                .allSatisfy(line -> assertThat(JsonParser.parseString(line).getAsJsonObject())
                        .satisfies(object -> assertThat(object.has("message")).isTrue()));
        assertThat(JsonParser.parseString(lastLine(result.err()))
                        .getAsJsonObject()
                        .get("message")
                        .getAsString())
                .startsWith("nereid serve: ")
                .contains("broken", "failed to read text proto from")
                .endsWith("; --exit-on-error=false serves the others");
    }

    @Test
    void servesTheOthersIfConfigured() throws IOException, InterruptedException {
        breakModel("broken");

        try (InstalledServer server = InstalledServer.serve(
                directory, "--exit-on-error=false", "--model-repository=" + InstalledServer.MODELS)) {
            assertThat(server.out())
                    .containsPattern("(?m)^add_sub +1 +READY$")
                    .containsPattern("(?m)^broken +(1|-) +UNAVAILABLE: Internal: failed to read text proto from"
                            + " .*config.pbtxt.*$");
            // It failed before a version existed, which does not count.
            assertThat(server.get("/v2/health/ready").statusCode()).isEqualTo(200);
        }
    }

    @Test
    void answersMetadataIfARepositoryIsMissing() throws IOException, InterruptedException {
        Path missing = directory.resolve("nosuch");

        try (InstalledServer server = InstalledServer.serve(
                missing, "--exit-on-error=false", "--model-repository=" + InstalledServer.MODELS)) {
            assertThat(server.out())
                    .contains(missing.toString())
                    .contains("no model repository (expected: an existing directory that may be read)");
            server.awaitErr("ERROR", "no model repository", missing.toString());
            assertThat(server.get("/v2/health/live").statusCode()).isEqualTo(400);
            assertThat(server.get("/v2/health/ready").statusCode()).isEqualTo(400);
            assertThat(server.get("/v2").statusCode()).isEqualTo(200);
            assertThat(server.get("/v2/models/add_sub").statusCode()).isNotEqualTo(200);
        }
    }

    @Test
    void reportsAModelOfTheStartThatIsInNoRepository() throws IOException, InterruptedException {
        for (String mode : List.of("explicit", "demand")) {
            try (InstalledServer server = InstalledServer.serve(
                    directory,
                    "--exit-on-error=false",
                    "--model-control-mode=" + mode,
                    "--load-model=add_sub",
                    "--load-model=unknown",
                    "--model-repository=" + InstalledServer.MODELS)) {
                assertThat(server.out())
                        .containsPattern("(?m)^add_sub +1 +READY$")
                        .containsPattern("(?m)^unknown +- +UNAVAILABLE: \\S.*unknown.*$");
                if (mode.equals("explicit")) {
                    server.awaitErr("failed to load 'unknown', failed to poll from model repository: model not found"
                            + " in any model repository");
                }
            }
        }
    }

    @Test
    void reportsWhichJavaIsMissing() throws IOException, InterruptedException {
        ProcessBuilder launcher =
                new ProcessBuilder("/bin/sh", launcherThatFindsNothing().toString());
        launcher.environment().clear();
        launcher.environment().putAll(Map.of("HOME", directory.toString(), "PATH", tools().toString()));

        Process process = launcher.start();
        String err = new String(process.getErrorStream().readAllBytes(), StandardCharsets.UTF_8);

        assertThat(process.waitFor()).isNotZero();
        assertThat(err.lines()).hasSize(1);
        assertThat(err).startsWith("nereid: Java 25: not found in ");
    }

    /** The launcher with search paths that do not exist. */
    private Path launcherThatFindsNothing() throws IOException {
        String script = Files.readString(InstalledServer.HOME.resolve("bin/nereid"))
                .replace("/usr/lib/jvm", "/no/jvm")
                .replace("/opt/", "/no/opt/")
                .replace("/Library/", "/no/Library/");
        return Files.writeString(directory.resolve("nereid"), script);
    }

    /** The tools that the launcher uses, and no others. */
    private Path tools() throws IOException {
        Path tools = Files.createDirectory(directory.resolve("tools"));
        for (String tool : new String[] {"dirname", "readlink"}) {
            Files.createSymbolicLink(tools.resolve(tool), Path.of("/usr/bin", tool));
        }
        return tools;
    }

    private InstalledServer.Result serve(String taken, int port) throws IOException, InterruptedException {
        String[] flags = new String[5];
        flags[0] = "serve";
        flags[1] = "--model-repository=" + directory;
        int next = 2;
        for (String name : new String[] {"http", "grpc", "metrics"}) {
            flags[next++] = "--" + name + "-port=" + (name.equals(taken) ? port : 0);
        }
        return InstalledServer.run(Map.of(), flags);
    }

    private void breakModel(String name) throws IOException {
        Path model =
                Files.createDirectories(directory.resolve(name).resolve("1")).getParent();
        Files.writeString(model.resolve("config.pbtxt"), "max_batch_size: many\n");
    }

    private static String lastLine(String text) {
        return text.lines().reduce("", (before, line) -> line);
    }
}
