package dev.nereid.distribution;

import static org.assertj.core.api.Assertions.assertThat;

import io.vertx.core.json.JsonObject;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests the command without plugins. */
final class CheckCommandTest {
    private final TestCommandContext process = new TestCommandContext(Map.of());

    @TempDir
    private Path directory;

    @Test
    void printsTablesAndErrorsWithTheirLines() throws IOException {
        model("misspelt", "name: \"misspelt\"\ninput {\n  dtype: TYPE_FP32\n}\nentirely: 1");
        model("orphan", "backend: \"lost\"\nresponse_cache { enable: true }");

        assertThat(process.run("check", directory.toString())).isEqualTo(1);

        String file = directory.resolve("misspelt/config.pbtxt").toString();
        String orphan = directory.resolve("orphan/config.pbtxt").toString();
        assertThat(process.err()).isEmpty();
        assertThat(process.out()).isEqualTo("""
                        BACKEND  PLUGIN  STATE  REASON

                        MODEL     VERSIONS  BACKEND  RESULT
                        misspelt  -         -        invalid: 2 errors
                        orphan    1         lost     invalid: 1 error, 1 warning

                        %1$s:3:3: error: unknown field 'dtype' in ModelInput; did you mean 'data_type'?
                              dtype: TYPE_FP32
                              ^
                        %1$s:5:1: error: unknown field 'entirely' in ModelConfig (expected: name, platform, backend, \
                        runtime, version_policy, max_batch_size, input, output, batch_input, batch_output, \
                        optimization, dynamic_batching, sequence_batching, ensemble_scheduling, instance_group, \
                        default_model_filename, cc_model_filenames, metric_tags, parameters, model_warmup, \
                        model_operations, model_transaction_policy, model_repository_agents, response_cache, \
                        model_metrics)
                            entirely: 1
                            ^
                        %2$s: error: version 1: unable to find backend library for backend 'lost', try specifying \
                        runtime on the model configuration.
                        %2$s: warning: response_cache has no effect: the server has no cache (expected: --cache-config)

                        2 models: 0 valid, 2 invalid
                        """.formatted(file, orphan));
        assertThat(process.logLevels).containsExactly("off off");
    }

    @Test
    void printsJson() throws IOException {
        model("misspelt", "max_batch_sise: 4");
        model("orphan", "backend: \"lost\"\nmax_batch_size: 4");

        assertThat(process.run("check", directory.toString(), "--json")).isEqualTo(1);

        JsonObject json = new JsonObject(process.out());
        JsonObject misspelt = json.getJsonArray("models").getJsonObject(0);
        JsonObject orphan = json.getJsonArray("models").getJsonObject(1);
        assertThat(json.getBoolean("valid")).isFalse();
        assertThat(json.getJsonArray("backends")).isEmpty();
        assertThat(json.getJsonArray("warnings")).isEmpty();
        assertThat(misspelt.getString("name")).isEqualTo("misspelt");
        assertThat(misspelt.getBoolean("valid")).isFalse();
        assertThat(misspelt.getString("file")).isEqualTo(directory.resolve("misspelt/config.pbtxt") + "");
        JsonObject error = misspelt.getJsonArray("errors").getJsonObject(0);
        assertThat(error.getInteger("line")).isEqualTo(1);
        assertThat(error.getInteger("column")).isEqualTo(1);
        assertThat(error.getString("text")).isEqualTo("max_batch_sise: 4");
        assertThat(error.getString("suggestion")).isEqualTo("max_batch_size");
        assertThat(error.getString("message")).startsWith("unknown field 'max_batch_sise' in ModelConfig (expected: ");
        assertThat(misspelt.containsKey("config")).isFalse();
        assertThat(orphan.getJsonArray("versions").getLong(0)).isEqualTo(1);
        assertThat(orphan.getJsonArray("errors").getJsonObject(0).fieldNames()).containsExactly("message");
        assertThat(orphan.getJsonObject("config").getInteger("max_batch_size")).isEqualTo(4);
    }

    @Test
    void printsCompletedConfigurationsIfVerbose() throws IOException {
        model("orphan", "backend: \"lost\"\nmax_batch_size: 4\ndynamic_batching {}");

        process.run("check", "--verbose", directory.toString());

        assertThat(process.out()).contains("""
                orphan: completed configuration
                  name: "orphan"
                  version_policy {
                    latest {
                      num_versions: 1
                    }
                  }
                  max_batch_size: 4
                """).contains("    preferred_batch_size: 4\n");
    }

    @Test
    void isSatisfiedWithNothingButSaysSo() {
        assertThat(process.run("check", directory.toString(), "--log")).isZero();

        assertThat(process.out()).endsWith("""
                        warning: no models found (expected: a directory for each model)

                        0 models: 0 valid, 0 invalid
                        """);
        assertThat(process.logLevels).containsExactly("info warn");
    }

    private void model(String name, String config) throws IOException {
        Files.createDirectories(directory.resolve(name).resolve("1"));
        Files.writeString(directory.resolve(name).resolve("config.pbtxt"), config);
    }
}
