package dev.nereid.distribution;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.distribution.testing.InstalledServer;
import dev.nereid.distribution.testing.Repository;
import io.vertx.core.json.JsonObject;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The installed command {@code nereid check}. */
@Tag("slow")
final class CheckIT {
    private static final Path SUM = InstalledServer.MODELS.resolve("add_sub/1/model.onnx");

    @TempDir
    private Path directory;

    @Test
    void findsTheBundledModelsValid() throws Exception {
        InstalledServer.Result result = InstalledServer.run("check", InstalledServer.MODELS.toString(), "--load");

        assertThat(result.err()).isEmpty();
        assertThat(result.status()).as(result.out()).isZero();
        assertThat(result.out())
                .containsPattern("(?m)^onnxruntime +\\S+ +AVAILABLE$")
                .containsPattern("(?m)^add_sub +1 +onnxruntime +valid$")
                .containsPattern("\\d+ models: \\d+ valid, 0 invalid\n$");
    }

    @Test
    void completesConfigurationsByTheBackend() throws Exception {
        new Repository(directory).onnx("auto", SUM);

        InstalledServer.Result result = InstalledServer.run("check", directory.toString(), "--json");

        assertThat(result.status()).isZero();
        JsonObject config = new JsonObject(result.out())
                .getJsonArray("models")
                .getJsonObject(0)
                .getJsonObject("config");
        assertThat(config.getString("backend")).isEqualTo("onnxruntime");
        assertThat(config.getJsonArray("input").size()).isEqualTo(2);
    }

    @Test
    void reportsWhatTheBackendSays() throws Exception {
        new Repository(directory).onnx("good", SUM).model("lost", "backend: \"onnxruntime\"");
        new Repository(directory).onnx("typo", SUM, "backend: \"onnxruntime\"\nmax_batch_sise: 8");
        Files.createDirectories(directory.resolve("broken/1"));
        Files.writeString(directory.resolve("broken/1/model.onnx"), "this is no model");

        InstalledServer.Result result = InstalledServer.run("check", directory.toString());

        assertThat(result.err()).isEmpty();
        assertThat(result.status()).isEqualTo(1);
        assertThat(result.out())
                .containsPattern("(?m)^good +1 +onnxruntime +valid$")
                .contains(directory.resolve("broken") + ": error: version 1: onnx runtime error 7: ")
                .contains(directory.resolve("lost/config.pbtxt")
                        + ": error: version 1: failed to stat file lost/1/model.onnx")
                .contains(directory.resolve("typo/config.pbtxt") + ":2:1: error: unknown field 'max_batch_sise' in"
                        + " ModelConfig; did you mean 'max_batch_size'?\n    max_batch_sise: 8\n    ^\n")
                .endsWith("4 models: 1 valid, 3 invalid\n");
    }

    @Test
    void failsWithTheStatusOfAWrongCommandLineWithoutARepository() throws Exception {
        InstalledServer.Result result =
                InstalledServer.run("check", directory.resolve("nowhere").toString());

        assertThat(result.status()).isEqualTo(2);
        assertThat(result.out()).isEmpty();
        assertThat(result.err().lines()).hasSize(1);
    }
}
