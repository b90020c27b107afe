package dev.nereid.distribution.metrics;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.distribution.testing.Eventually;
import dev.nereid.distribution.testing.InstalledServer;
import dev.nereid.distribution.testing.Repository;
import dev.nereid.distribution.testing.TableModel;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Loads, failures and unloads of a model are counted, and go on after its unload. */
class LoadMetricsIT {
    @TempDir
    private Path directory;

    @Test
    void loadsFailuresAndUnloadsAreCounted() throws Exception {
        Repository models = new Repository(directory).model("m", TableModel.config(""));
        TableModel.write(models, "m", 1, 1);
        try (InstalledServer server =
                InstalledServer.serve(directory, "--model-control-mode=explicit", "--load-model=m")) {
            assertCounts(server, 1, 0, 0);

            Path added = Files.createDirectories(directory.resolve("m/2"));
            Files.writeString(added.resolve("model.onnx"), "broken");
            assertThat(server.post("/v2/repository/models/m/load", "{}").statusCode())
                    .isEqualTo(400);
            assertCounts(server, 1, 1, 0);

            assertThat(server.post("/v2/repository/models/m/unload", "{}").statusCode())
                    .isEqualTo(200);
            Eventually.holds("closed", 20, () -> lines(server).contains("nereid_model_unloads_total{model=\"m\"} 1"));
            assertCounts(server, 1, 1, 1);

            Files.delete(added.resolve("model.onnx"));
            Files.delete(added);
            assertThat(server.post("/v2/repository/models/m/load", "{}").statusCode())
                    .isEqualTo(200);
            assertCounts(server, 2, 1, 1);
        }
    }

    private static void assertCounts(InstalledServer server, int loads, int failures, int unloads) {
        assertThat(lines(server))
                .contains(
                        "nereid_model_loads_total{model=\"m\"} " + loads,
                        "nereid_model_load_failures_total{model=\"m\"} " + failures,
                        "nereid_model_unloads_total{model=\"m\"} " + unloads,
                        "nereid_model_load_duration_seconds_count{model=\"m\"} " + loads);
    }

    private static List<String> lines(InstalledServer server) {
        try {
            return server.metrics("GET", "/metrics").body().lines().toList();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new AssertionError(e);
        }
    }
}
