package dev.nereid.distribution;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.distribution.testing.Eventually;
import dev.nereid.distribution.testing.InstalledServer;
import dev.nereid.distribution.testing.Repository;
import dev.nereid.distribution.testing.TableModel;
import io.vertx.core.json.JsonArray;
import io.vertx.core.json.JsonObject;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Loads, lists, configures and unloads the models of the installed server by commands. */
@Tag("slow")
@Timeout(300)
final class ModelCommandsIT {
    private static final String FIRST = "version_policy { specific { versions: [ 1 ] } }\n";

    @TempDir
    private Path directory;

    private TestCommandContext process;
    private InstalledServer server;
    private Path repository;

    @BeforeEach
    void start() throws IOException {
        repository = Files.createDirectories(directory.resolve("models"));
        Repository models = new Repository(repository).model("m", TableModel.config(FIRST));
        TableModel.write(models, "m", 1, 16);
        TableModel.write(models, "m", 2, 16);
        models.model("n", TableModel.config(""));
        TableModel.write(models, "n", 1, 16);
        server = InstalledServer.serve(repository, "--model-control-mode=explicit");
        process = new TestCommandContext(Map.of("NEREID_URL", server.address("HTTP")));
    }

    @AfterEach
    void stop() {
        server.close();
    }

    @Test
    void loadsListsAndUnloads() throws Exception {
        assertThat(models()).isEqualTo("MODEL VERSION STATE REASON|m - -|n - -");
        assertThat(process.run("load", "m")).isZero();
        assertThat(process.run("load", "m")).isZero();
        assertThat(process.run("load", "n")).isZero();

        assertThat(models()).isEqualTo("MODEL VERSION STATE REASON|m 1 READY|n 1 READY");
        assertThat(element("m")).isEqualTo(TableModel.element(1, 3));

        assertThat(process.run("unload", "m")).isZero();
        assertThat(process.run("unload", "n", "--dependents")).isZero();
        awaitModels("MODEL VERSION STATE REASON|m 1 UNAVAILABLE unloaded|n 1 UNAVAILABLE unloaded");
        assertThat(process.err()).isEmpty();
        assertThat(process.out().lines().filter(line -> line.endsWith("loaded") && !line.contains("UNAVAILABLE")))
                .containsExactly("m: loaded", "m: loaded", "n: loaded", "m: unloaded", "n: unloaded");
    }

    @Test
    void loadsWithAConfigurationAndFiles() throws Exception {
        Path second = Files.writeString(
                directory.resolve("second.pbtxt"),
                TableModel.config("version_policy { specific { versions: [ 2 ] } }\n"));
        Path other = Files.write(directory.resolve("other.onnx"), TableModel.bytes(7, 16));

        assertThat(process.run("load", "m", "--config=" + second)).isZero();
        assertThat(element("m")).isEqualTo(TableModel.element(2, 3));
        assertThat(config("m").getJsonObject("version_policy").encode()).isEqualTo("{\"specific\":{\"versions\":[2]}}");

        assertThat(process.run(
                        "load",
                        "m",
                        "--config={\"backend\":\"onnxruntime\",\"max_batch_size\":4}",
                        "--file=1/model.onnx=" + other))
                .isZero();
        assertThat(element("m")).isEqualTo(TableModel.element(7, 3));
        assertThat(config("m").getInteger("max_batch_size")).isEqualTo(4);
        assertThat(process.err()).isEmpty();
    }

    @Test
    void reportsALoadThatFails() throws Exception {
        Files.writeString(repository.resolve("n/1/model.onnx"), "broken");

        assertThat(process.run("load", "m")).isZero();
        assertThat(process.run("load", "n")).isEqualTo(1);

        assertThat(process.err())
                .startsWith("nereid load: " + server.address("HTTP")
                        + ": load failed for model 'n': version 1 is at UNAVAILABLE state: ");
        assertThat(models()).contains("|m 1 READY|n 1 UNAVAILABLE ");
        assertThat(InstalledServer.run("check", repository.toString(), "--load").status())
                .isEqualTo(1);
    }

    @Test
    void printsResultsAsJson() throws Exception {
        Files.writeString(repository.resolve("n/1/model.onnx"), "broken");

        assertThat(process.run("load", "m", "--json")).isZero();
        assertThat(process.run("load", "n", "--json")).isEqualTo(1);
        assertThat(process.run("config", "m", "--json")).isZero();
        assertThat(process.run("unload", "m", "--json")).isZero();

        assertThat(process.out())
                .startsWith("{\"model\":\"m\",\"ok\":true}\n{\"model\":\"n\",\"ok\":false,\"error\":\"")
                .endsWith("}\n{\"model\":\"m\",\"ok\":true}\n");
        assertThat(process.err()).startsWith("nereid load: ");
    }

    @Test
    void checksWhatTheServerLoads() throws Exception {
        InstalledServer.Result check = InstalledServer.run("check", repository.toString(), "--load");

        assertThat(check.err()).isEmpty();
        assertThat(check.status()).as(check.out()).isZero();
        assertThat(check.out())
                .containsPattern("(?m)^m +1 +onnxruntime +valid$")
                .containsPattern("(?m)^n +1 +onnxruntime +valid$");
    }

    private JsonObject config(String model) {
        return new JsonObject(output("config", model));
    }

    private float element(String model) throws Exception {
        String response = server.post(
                        "/v2/models/" + model + "/infer",
                        "{\"inputs\":[{\"name\":\"INPUT0\",\"shape\":[1,1],\"datatype\":\"INT64\",\"data\":[3]}]}")
                .body();
        return new JsonObject(response)
                .getJsonArray("outputs")
                .getJsonObject(0)
                .getJsonArray("data")
                .getFloat(0);
    }

    /** Returns the lines of the table with single spaces, separated by bars, and checks the JSON against it. */
    private String models() {
        String table = output("models").strip().replaceAll(" *\n", "|").replaceAll(" +", " ");
        JsonArray json = new JsonArray(output("models", "--json"));
        assertThat(json).hasSize((int) table.chars().filter(c -> c == '|').count());
        for (int i = 0; i < json.size(); i++) {
            assertThat(table).contains("|" + json.getJsonObject(i).getString("name"));
        }
        return table;
    }

    private void awaitModels(String table) {
        Eventually.holds(table, 20, () -> models().equals(table));
    }

    /** Returns what a command prints, and nothing of the commands before it. */
    private String output(String... command) {
        int before = process.out().length();
        assertThat(process.run(command)).as(process.err()).isZero();
        return process.out().substring(before);
    }
}
