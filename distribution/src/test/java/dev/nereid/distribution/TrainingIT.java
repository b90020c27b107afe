package dev.nereid.distribution;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.distribution.testing.InstalledServer;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The training load of nereid-aot. */
@Tag("slow")
final class TrainingIT {
    private static final String PORTS = "--http-port=0 --grpc-port=0 --metrics-port=0";
    private static final String ARCHIVED = "source: shared objects file";

    @TempDir
    private Path directory;

    @Test
    void completesManyRequestsOverBothProtocolsAndExits() throws IOException, InterruptedException {
        InstalledServer.Result result = InstalledServer.run(
                Map.of("NEREID_JAVA_OPTIONS", "-XX:Tier4InvocationThreshold=10000"), training("demo --train=2"));

        assertThat(result.status()).as(result.err()).isZero();
        assertThat(result.out()).containsPattern("(?m)^trained: \\d{2,} over HTTP, \\d{2,} over gRPC$");
    }

    /** The JVM crashes when it unloads an archived class that the profiles of the cache name. */
    @Test
    void archivesNoClassOfAPlugin() throws IOException, InterruptedException {
        Path cache = directory.resolve("test.aot");
        Path log = directory.resolve("classes.log");
        InstalledServer.Result trained =
                InstalledServer.run(Map.of("NEREID_AOT_OUTPUT", cache.toString()), training("demo --train=1"));
        assertThat(trained.status()).as(trained.err()).isZero();

        InstalledServer.Result started = InstalledServer.run(
                Map.of("NEREID_JAVA_OPTIONS", "-XX:AOTCache=" + cache + " -Xlog:class+load:file=" + log),
                training("demo --exit"));
        assertThat(started.status()).as(started.err()).isZero();
        assertThat(archived(log, "dev.nereid.server.")).isNotEmpty();
        assertThat(loaded(log, "dev.nereid.examples.identity.")).isNotEmpty();
        assertThat(loaded(log, "dev.nereid.backend.onnx.")).isNotEmpty();
        assertThat(archived(log, "dev.nereid.examples.")).isEmpty();
        assertThat(archived(log, "dev.nereid.backend.")).isEmpty();
    }

    private static List<String> archived(Path log, String prefix) throws IOException {
        return loaded(log, prefix).stream()
                .filter(line -> line.endsWith(ARCHIVED))
                .toList();
    }

    private static List<String> loaded(Path log, String prefix) throws IOException {
        return Files.readAllLines(log).stream()
                .filter(line -> line.contains(" " + prefix))
                .toList();
    }

    private static String[] training(String command) {
        String arguments = command + " " + PORTS + " --model-repository="
                + InstalledServer.HOME.resolve("training/models") + " --backend-directory="
                + InstalledServer.HOME.resolve("training/plugins");
        return arguments.split(" ");
    }

    @Test
    void failsWithOneLineWithoutItsModel() throws IOException, InterruptedException {
        InstalledServer.Result result =
                InstalledServer.run("demo", "--train=1", "--http-port=0", "--grpc-port=0", "--metrics-port=0");

        assertThat(result.status()).isNotZero();
        assertThat(result.err()).contains("nereid demo: inference failed: training: ");
    }
}
