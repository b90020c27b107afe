package dev.nereid.distribution.traffic;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import dev.nereid.distribution.testing.Eventually;
import dev.nereid.distribution.testing.InstalledServer;
import dev.nereid.distribution.testing.ProcessUse;
import dev.nereid.distribution.testing.Repository;
import dev.nereid.distribution.testing.TableModel;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Nothing of a server process grows with the number of reloads. After 200 of them it uses what it used after 20. Some
 * of the reloads fail in the backend.
 */
@Tag("slow")
class ReloadGrowthIT {
    private static final int WARM = 20;
    private static final int RELOADS = 200;
    private static final int BROKEN_PERIOD = 5;
    private static final int REQUESTS = 4;

    /** Elements of a table: 180 tables that stay would be 720 MiB. The launcher has blocks of this size mapped singly. */
    private static final int ELEMENTS = 1 << 20;

    private static final long HEAP_MARGIN = 1L << 20;

    /** Compiled code, profiles and memory of the compilers, which grow until everything hot is compiled. */
    private static final long RESIDENT_MARGIN = 32L << 20;

    /** The JVM starts and ends threads of its compilers and of its pool for virtual threads. */
    private static final int THREAD_MARGIN = 3;

    /** A plugin that stays would be several classes each time. */
    private static final int CLASS_MARGIN = 20;

    private static final int LOADER_MARGIN = 5;

    /** So many control requests over HTTP start all worker threads of the HTTP port. */
    private static final int WORKERS = 20;

    private static final String CONFIG = """
            {"parameters":{"config":"{\\"backend\\": \\"%s\\", \\"max_batch_size\\": 8,
             \\"version_policy\\": {\\"specific\\": {\\"versions\\": [%d]}},
             \\"instance_group\\": [{\\"kind\\": \\"KIND_CPU\\", \\"count\\": 2}],
             \\"input\\": [{\\"name\\": \\"INPUT0\\", \\"data_type\\": \\"TYPE_INT64\\", \\"dims\\": [-1]}],
             \\"output\\": [{\\"name\\": \\"OUTPUT0\\", \\"data_type\\": \\"%s\\", \\"dims\\": [-1]}]}"}}
            """.replace("\n", "");

    @TempDir
    private Path directory;

    private final HttpClient http = HttpClient.newHttpClient();

    @AfterEach
    void close() {
        http.close();
    }

    @Test
    void ofOnnxModels() throws Exception {
        Repository models = new Repository(directory).model("m", TableModel.config(""));
        TableModel.write(models, "m", 1, ELEMENTS);
        TableModel.write(models, "m", 2, ELEMENTS);

        check("ONNX models", (server, version) -> {
            reload(server, "onnxruntime", version, "TYPE_FP32");
            return TableModel.element(version, 3);
        });
    }

    /** Each reload ends the plugin with its class loader, and loads it again. */
    @Test
    void ofModelsOfAPluginInJava() throws Exception {
        new Repository(directory).model("m", Repository.identity(8, "INT64", "[ -1 ]", ""));
        Files.createDirectories(directory.resolve("m/2"));

        check("a plugin in Java", (server, version) -> {
            send(server, "/v2/repository/models/m/unload", "{}", 200);
            Eventually.holds("the model is closed", 20, () -> {
                String index = index(server);
                return !index.contains("READY") && !index.contains("UNLOADING");
            });
            reload(server, "identity", version, "TYPE_INT64");
            return 3;
        });
    }

    /** Reloads a model, and returns its response to the request. */
    @FunctionalInterface
    private interface Reload {
        double run(InstalledServer server, int version) throws IOException, InterruptedException;
    }

    private void check(String what, Reload reload) throws Exception {
        assumeThat(ProcessUse.isSupported()).as(ProcessUse.NOT_SUPPORTED).isTrue();
        Files.writeString(Files.createDirectories(directory.resolve("m/3")).resolve("model.onnx"), "broken");
        // A heap of one size, all of it there from the start: what the process grows by is native memory. Without the
        // optimizing compiler, whose memory and code grow for minutes until all that is hot is compiled. Without the
        // class that the JVM makes for a method handle after 127 calls: protobuf has one handle for each field.
        try (InstalledServer server = InstalledServer.serve(
                Map.of(
                        "NEREID_JAVA_OPTIONS",
                        "-Xms128m -Xmx128m -XX:+AlwaysPreTouch -XX:TieredStopAtLevel=1"
                                + " -Djava.lang.invoke.MethodHandle.CUSTOMIZE_THRESHOLD=-1"),
                directory,
                "--model-control-mode=explicit",
                "--backend-directory=" + InstalledServer.CHECKOUT.resolve("examples/plugins"))) {
            for (int i = 0; i < WORKERS; i++) {
                index(server);
            }
            run(server, reload, WARM);
            ProcessUse.of(server); // loads the server's classes for metrics, also of models
            ProcessUse warm = ProcessUse.of(server);
            run(server, reload, RELOADS - WARM);
            ProcessUse after = ProcessUse.of(server);

            System.out.println("ReloadGrowthIT: " + what + ": after " + WARM + " reloads " + warm + ", after " + RELOADS
                    + " " + after);
            assertThat(after.heap()).as("heap").isLessThan(warm.heap() + HEAP_MARGIN);
            assertThat(after.loaders()).as("class loaders").isLessThan(warm.loaders() + LOADER_MARGIN);
            assertThat(after.classes()).as("classes").isLessThan(warm.classes() + CLASS_MARGIN);
            assertThat(after.resident()).as("resident").isLessThan(warm.resident() + RESIDENT_MARGIN);
            assertThat(after.threads()).as("threads").isLessThanOrEqualTo(warm.threads() + THREAD_MARGIN);
            assertThat(after.descriptors()).as("descriptors").isLessThanOrEqualTo(warm.descriptors());
            assertThat(after.files()).as("mapped files").isLessThanOrEqualTo(warm.files());
        }
    }

    private void run(InstalledServer server, Reload reload, int count) throws IOException, InterruptedException {
        for (int i = 1; i <= count; i++) {
            int version = 1 + i % 2;
            double expected = reload.run(server, version);
            if (i % BROKEN_PERIOD == 0) {
                send(server, "/v2/repository/models/m/load", CONFIG.formatted("onnxruntime", 3, "TYPE_FP32"), 400);
            }
            for (int request = 0; request < REQUESTS; request++) {
                assertThat(infer(server))
                        .contains("\"model_version\":\"" + version + "\"")
                        .containsPattern("\"data\":\\[" + (int) expected + "(\\.0)?]");
            }
        }
    }

    private void reload(InstalledServer server, String backend, int version, String type)
            throws IOException, InterruptedException {
        send(server, "/v2/repository/models/m/load", CONFIG.formatted(backend, version, type), 200);
    }

    private String infer(InstalledServer server) throws IOException, InterruptedException {
        return send(
                server,
                "/v2/models/m/infer",
                "{\"inputs\":[{\"name\":\"INPUT0\",\"shape\":[1,1],\"datatype\":\"INT64\",\"data\":[3]}]}",
                200);
    }

    private String index(InstalledServer server) {
        try {
            return send(server, "/v2/repository/index", "{}", 200);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new AssertionError(e);
        }
    }

    private String send(InstalledServer server, String path, String body, int status)
            throws IOException, InterruptedException {
        HttpResponse<String> response = http.send(
                HttpRequest.newBuilder(URI.create(server.address("HTTP") + path))
                        .POST(HttpRequest.BodyPublishers.ofString(body))
                        .build(),
                HttpResponse.BodyHandlers.ofString());
        assertThat(response.statusCode()).as(response.body()).isEqualTo(status);
        return response.body();
    }
}
