package dev.nereid.distribution;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.distribution.testing.InstalledServer;
import java.io.IOException;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Runs the commands of the documents. */
@Tag("slow")
final class DocumentationIT {
    /** A fenced block, with the name of the file that it is to be saved as on the line before, if any. */
    private static final Pattern BLOCK =
            Pattern.compile("(?:^`([^`\n]+)`:\n\n)?^```(\\w*)\n(.*?)^```$", Pattern.MULTILINE | Pattern.DOTALL);

    private static final String WRITTEN_ADDRESS = "localhost:8000";
    private static final int MAX_QUICK_START = 10;
    private static final int FIRST_SCREEN = 24;

    @TempDir
    private Path directory;

    @Test
    void theQuickStartWorksAndIsQuick() throws IOException, InterruptedException {
        String output = follow("README.md");

        assertThat(output)
                .containsPattern("digit_7_0.png over HTTP: seven")
                .containsPattern("digit_7_0.png over gRPC: seven")
                .containsPattern("star.png over HTTP: star")
                .containsPattern("star.png over gRPC: star")
                .contains("[11,22,33,44]", "[9,18,27,36]")
                .containsPattern("(?m)^add_sub +1 +onnxruntime +valid$")
                .containsPattern("(?m)^add_sub +1 +READY$");
        assertThat(commands(Files.readString(InstalledServer.CHECKOUT.resolve("README.md")))
                        .lines())
                .hasSizeLessThanOrEqualTo(MAX_QUICK_START);
    }

    @Test
    void theFirstScreenNamesTheTwoCommandsOfTheSetUp() throws IOException {
        String readme = Files.readString(InstalledServer.CHECKOUT.resolve("README.md"));
        String integration = Files.readString(InstalledServer.CHECKOUT.resolve(".ci/run"));

        assertThat(readme.lines().limit(FIRST_SCREEN))
                .anyMatch(line -> line.matches("\\./nereid demo( .*)?"))
                .anyMatch(line -> line.matches("\\./mvnw verify( .*)?"));
        assertThat(integration.lines().toList().getLast()).isEqualTo("exec ./mvnw verify");
    }

    @Test
    void theBackendOfTheAuthorsGuideWorks() throws IOException, InterruptedException {
        assertThat(follow("docs/backend-authors.md")).contains("[2.0,5.0,-6.0]");
    }

    @Test
    void ensembles() throws Exception {
        assertThat(follow("docs/ensembles.md")).contains("[20,40,60,80]", "[2,4,6,8]");
    }

    @Test
    void pipelines() throws IOException, InterruptedException {
        assertThat(follow("docs/pipelines.md"))
                .contains("\"name\":\"CLASSIFICATION\"", "\"shape\":[1,1000]")
                .containsPattern("\\{\"label\":\"heart\",\"score\":[01]\\.\\d+,\"top\":\\[")
                .contains("\"name\":\"image_preprocess_model\"", "\"batch_size\":1")
                .contains("in ensemble 'ensemble_model'", "image: begins with")
                .contains("\"1969-07-20\",\"1989-11-09\"")
                .containsPattern("smiling.*neutral.*sad");
    }

    @Test
    void theSpeechOfTheSequencesGuideIsFound() throws IOException, InterruptedException {
        assertThat(follow("docs/sequences.md"))
                .containsPattern("(?m)^2\\.05 s: speech in 16 of 16 chunks$")
                .containsPattern("(?m)^2\\.56 s: speech in 11 of 16 chunks$");
    }

    @Test
    void theTextOfTheGuideIsWritten() throws IOException, InterruptedException {
        String output = follow("docs/text-generation.md");
        assertThat(output.split("\"text_output\":", -1)).hasSize(80 + 1);
        assertThat(output).containsPattern("\"batch_size\":[234]\\b");
    }

    /** Saves the files of a document, runs its commands one after another, and returns their output. */
    private String follow(String document) throws IOException, InterruptedException {
        String text = Files.readString(InstalledServer.CHECKOUT.resolve(document));
        for (String part : List.of("nereid", "distribution", "examples")) {
            Files.createSymbolicLink(directory.resolve(part), InstalledServer.CHECKOUT.resolve(part));
        }
        saveFiles(text);
        int port = freePort();
        String script = "trap 'kill $! 2>/dev/null' EXIT\nset -e\n"
                + commands(text).replace(WRITTEN_ADDRESS, "localhost:" + port);
        ProcessBuilder shell = new ProcessBuilder("/bin/sh", "-c", script)
                .directory(directory.toFile())
                .redirectErrorStream(true);
        shell.environment()
                .putAll(Map.of(
                        "NEREID_HTTP_PORT",
                        String.valueOf(port),
                        "NEREID_URL",
                        "http://localhost:" + port,
                        "NEREID_GRPC_PORT",
                        "0",
                        "NEREID_METRICS_PORT",
                        "0",
                        "PATH",
                        Path.of(System.getProperty("java.home"), "bin") + ":" + System.getenv("PATH")));
        Process process = shell.start();
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(process.waitFor()).as(output).isZero();
        return output;
    }

    private void saveFiles(String text) throws IOException {
        for (Matcher block = BLOCK.matcher(text); block.find(); ) {
            if (block.group(1) != null) {
                Path file = directory.resolve(block.group(1));
                Files.createDirectories(file.getParent());
                Files.writeString(file, block.group(3));
            }
        }
    }

    private static String commands(String text) {
        StringBuilder commands = new StringBuilder();
        for (Matcher block = BLOCK.matcher(text); block.find(); ) {
            if (block.group(2).equals("sh")) {
                commands.append(block.group(3));
            }
        }
        return commands.toString();
    }

    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0)) {
            return socket.getLocalPort();
        }
    }
}
