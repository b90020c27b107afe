package dev.nereid.distribution.traffic;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import dev.nereid.distribution.testing.InstalledServer;
import dev.nereid.distribution.testing.ProcessUse;
import dev.nereid.distribution.testing.Repository;
import dev.nereid.distribution.testing.TableModel;
import java.io.IOException;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The memory of unloaded models goes back to the operating system. */
@Tag("slow")
class UnloadMemoryIT {
    private static final int MODELS = 50;
    private static final int MODEL_BYTES = 20 << 20;
    private static final int TINY_MODEL_BYTES = 4 << 10;
    private static final int CLIENTS = 4;
    private static final double MARGIN = 1.1;
    private static final long TIMEOUT_SECONDS = 120;

    @TempDir
    private Path directory;

    @Test
    void isReturnedAfterAnUnload() throws Exception {
        assumeThat(ProcessUse.isSupported()).as(ProcessUse.NOT_SUPPORTED).isTrue();
        Repository models = new Repository(directory);
        models.model("first", TableModel.config(""));
        TableModel.write(models, "first", 1, MODEL_BYTES / Float.BYTES);
        models.model("tiny", TableModel.config(""));
        TableModel.write(models, "tiny", 1, TINY_MODEL_BYTES / Float.BYTES);
        List<String> names = linked(models, "m", "first");
        List<String> tinyNames = linked(models, "t", "tiny");
        try (InstalledServer server =
                        InstalledServer.serve(directory, "--model-control-mode=explicit", "--load-model=first");
                ExecutorService clients = Executors.newFixedThreadPool(CLIENTS)) {
            infer(server, "first");
            // As much work as follows, with models that take no memory: what the JVM keeps of it counts for neither
            // side.
            loadAll(server, clients, tinyNames);
            unloadAll(server, clients, tinyNames);
            long before = ProcessUse.settledResidentBytes(server);

            loadAll(server, clients, names);
            long loaded = ProcessUse.settledResidentBytes(server);
            unloadAll(server, clients, names);
            long after = ProcessUse.settledResidentBytes(server);

            System.out.printf(
                    "UnloadMemoryIT: resident MiB before %.1f, with %d models of 20 MiB %.1f, after their unload %.1f%n",
                    mebibytes(before), MODELS, mebibytes(loaded), mebibytes(after));
            assertThat(loaded).as("all models are resident").isGreaterThan(before + MODELS / 2 * (long) MODEL_BYTES);
            assertThat(after).isLessThan((long) (MARGIN * before));
            infer(server, "first");
        }
    }

    /** Makes models of the file of another one. */
    private List<String> linked(Repository models, String prefix, String file) throws IOException {
        List<String> names = new ArrayList<>();
        for (int i = 0; i < MODELS; i++) {
            String name = prefix + i;
            names.add(name);
            models.model(name, TableModel.config(""));
            Files.createLink(directory.resolve(name + "/1/model.onnx"), directory.resolve(file + "/1/model.onnx"));
        }
        return names;
    }

    private static void loadAll(InstalledServer server, ExecutorService clients, List<String> names) throws Exception {
        all(clients, names, name -> {
            post(server, "/v2/repository/models/" + name + "/load", "{}");
            infer(server, name);
        });
    }

    private static void unloadAll(InstalledServer server, ExecutorService clients, List<String> names)
            throws Exception {
        all(clients, names, name -> post(server, "/v2/repository/models/" + name + "/unload", "{}"));
    }

    /** An action of one client with one model. */
    @FunctionalInterface
    private interface Action {
        void run(String model) throws IOException, InterruptedException;
    }

    private static void all(ExecutorService clients, List<String> models, Action action) throws Exception {
        List<Future<?>> all = new ArrayList<>();
        for (String model : models) {
            all.add(clients.submit(() -> {
                action.run(model);
                return null;
            }));
        }
        for (Future<?> one : all) {
            one.get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
        }
    }

    private static void infer(InstalledServer server, String model) throws IOException, InterruptedException {
        String response = post(
                server,
                "/v2/models/" + model + "/infer",
                "{\"inputs\":[{\"name\":\"INPUT0\",\"shape\":[1,1],\"datatype\":\"INT64\",\"data\":[3]}]}");
        assertThat(response).contains("\"data\":[" + TableModel.element(1, 3) + "]");
    }

    private static String post(InstalledServer server, String path, String body)
            throws IOException, InterruptedException {
        HttpResponse<String> response = server.post(path, body);
        assertThat(response.statusCode()).as(response.body()).isEqualTo(200);
        return response.body();
    }

    private static double mebibytes(long bytes) {
        return bytes / (double) (1 << 20);
    }
}
