package dev.nereid.distribution;

import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.distribution.testing.Eventually;
import dev.nereid.distribution.testing.InstalledServer;
import dev.nereid.distribution.testing.Repository;
import dev.nereid.storage.s3.testing.S3Server;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Files of models that their owner overwrites, truncates and removes while the installed server serves the models. */
@Tag("slow")
final class MappedFilesIT {
    private static final Path EXTERNAL =
            InstalledServer.CHECKOUT.resolve("backend-onnx/src/test/resources/models/external_data");
    private static final String EXAMPLES =
            "--backend-directory=" + InstalledServer.CHECKOUT.resolve("examples/plugins");
    private static final String EXTERNAL_CONFIG = """
            backend: "onnxruntime"
            input [ { name: "input" data_type: TYPE_FP32 dims: [ 64 ] } ]
            output [ { name: "output" data_type: TYPE_FP32 dims: [ 64 ] } ]
            """;
    private static final String ZEROS = "{\"inputs\": [{\"name\": \"input\", \"datatype\": \"FP32\", \"shape\": [64],"
            + " \"data\": " + Collections.nCopies(64, 0) + "}]}";
    private static final String ADD = """
            {"inputs": [
              {"name": "INPUT0", "datatype": "INT32", "shape": [1, 4], "data": [10, 20, 30, 40]},
              {"name": "INPUT1", "datatype": "INT32", "shape": [1, 4], "data": [1, 2, 3, 4]}]}""";
    private static final String ECHO = """
            {"inputs": [{"name": "INPUT0", "datatype": "INT32", "shape": [1, 2], "data": [5, 7]}]}""";
    private static final String OLD = "[0.0,1.0,2.0,3.0,";
    private static final String NEW = "[7.0,7.0,7.0,7.0,";

    @TempDir
    private Path directory;

    private Path cache;
    private Repository models;

    @BeforeEach
    void writeModels() throws IOException {
        cache = Files.createDirectory(directory.resolve("cache"));
        models = new Repository(Files.createDirectory(directory.resolve("models")));
        models.model("external", EXTERNAL_CONFIG);
        copyExternal("external");
        models.copyOf(InstalledServer.MODELS.resolve("add_sub"));
        models.model("echo", Repository.identity(8, "INT32", "[2]", ""));
    }

    @ParameterizedTest
    @ValueSource(strings = {"none", "poll", "explicit", "demand"})
    void servesOnWhileAllFilesAreOverwrittenTruncatedAndRemoved(String mode) throws Exception {
        try (InstalledServer server = InstalledServer.serve(
                Map.of(),
                models.directory(),
                EXAMPLES,
                "--plugin-cache-directory=" + cache,
                "--model-control-mode=" + mode,
                "--repository-poll-secs=3600",
                mode.equals("explicit") ? "--load-model=*" : "--exit-on-error=true")) {
            assertServes(server);
            assertNothingMapped(server);
            assertThat(server.get("/v2/models/external/stats").body())
                    .contains("\"memory_usage\":[{\"type\":\"CPU\",\"id\":0,\"byte_size\":417}]");

            for (Path file : files(models.directory())) {
                overwrite(file, new byte[(int) Files.size(file)]);
            }
            assertServes(server);
            for (Path file : files(models.directory())) {
                overwrite(file, new byte[0]);
            }
            assertServes(server);
            for (Path file : files(models.directory())) {
                Files.delete(file);
            }
            assertServes(server);
            server.interrupt();
            assertThat(server.awaitEnd().status()).isZero();
        }
        assertThat(copies()).as("at the end").isEmpty();
    }

    @Test
    void takesNewContentUpAsAWhole() throws Exception {
        try (InstalledServer server = InstalledServer.serve(
                Map.of(),
                models.directory(),
                EXAMPLES,
                "--plugin-cache-directory=" + cache,
                "--model-control-mode=poll",
                "--repository-poll-secs=1")) {
            assertServes(server);

            overwrite(models.directory().resolve("external/1/weights.bin"), newWeights());

            Eventually.holds("the new content", 60, () -> {
                String answer = post(server, "external", ZEROS);
                assertThat(answer).containsAnyOf(OLD, NEW);
                return answer.contains(NEW);
            });
            assertNothingMapped(server);
            Eventually.holds("the end of the former version", 60, () -> copies().size() == 1);
        }
    }

    @Test
    void servesOnWhileObjectsOfAStoreChange() throws Exception {
        Path objects = Files.createDirectory(directory.resolve("objects"));
        try (S3Server store = S3Server.start(objects)) {
            store.putAll("models/external", models.directory().resolve("external"));
            Map<String, String> environment = Map.of(
                    "AWS_ACCESS_KEY_ID",
                    "a",
                    "AWS_SECRET_ACCESS_KEY",
                    "b",
                    "AWS_REGION",
                    "us-east-1",
                    "AWS_EC2_METADATA_DISABLED",
                    "true");
            try (InstalledServer server = InstalledServer.serve(
                    environment,
                    "s3://" + store.address() + "/" + S3Server.BUCKET + "/models",
                    "--plugin-cache-directory=" + cache,
                    "--model-control-mode=explicit",
                    "--load-model=external")) {
                Eventually.holds("start", 60, () -> isOk(server));
                assertThat(post(server, "external", ZEROS)).contains(OLD);
                assertThat(copies()).as("the copy of the store is the server's").isEmpty();

                store.put("models/external/1/weights.bin", newWeights());
                assertThat(post(server, "external", ZEROS)).contains(OLD);
                assertThat(server.post("/v2/repository/models/external/load", "{}")
                                .statusCode())
                        .isEqualTo(200);
                assertThat(post(server, "external", ZEROS)).contains(NEW);
            }
        }
    }

    @Test
    void removesWhatAKilledServerLeft() throws Exception {
        try (InstalledServer server = explicit(cache)) {
            assertServes(server);
            assertThat(copies()).isNotEmpty();
            server.signal("KILL");
            assertThat(server.awaitEnd().status()).isEqualTo(137);
        }
        List<Path> left = copies();
        assertThat(left).isNotEmpty();

        try (InstalledServer server = explicit(cache)) {
            assertServes(server);
            assertThat(left).allSatisfy(path -> assertThat(path).doesNotExist());
        }
    }

    /** Only a model with external data needs the directory, once the libraries are unpacked. */
    @Test
    void saysWhichDirectoryCannotBeWritten() throws Exception {
        try (InstalledServer server = explicit(cache)) {
            assertServes(server);
            server.post("/v2/repository/models/external/unload", "{}");
            Eventually.holds("the end of the copy", 60, () -> copies().isEmpty());
            Files.delete(requireNonNull(owned())); // as by an administrator who cleans up

            HttpResponse<String> answer = server.post("/v2/repository/models/external/load", "{}");

            assertThat(answer.statusCode()).isEqualTo(400);
            assertThat(answer.body())
                    .contains("private copies of files of model 'external' cannot be written: ")
                    .contains("--plugin-cache-directory or NEREID_PLUGIN_CACHE_DIRECTORY, can be written)")
                    .doesNotContain(directory.toString());
            assertThat(post(server, "add_sub", ADD)).contains("[11,22,33,44]");
        }
    }

    private InstalledServer explicit(Path cacheDirectory) throws IOException {
        return InstalledServer.serve(
                Map.of(),
                models.directory(),
                EXAMPLES,
                "--plugin-cache-directory=" + cacheDirectory,
                "--model-control-mode=explicit",
                "--load-model=*");
    }

    private static void assertServes(InstalledServer server) {
        Eventually.holds("start", 60, () -> isOk(server));
        assertThat(post(server, "external", ZEROS)).contains(OLD);
        assertThat(post(server, "add_sub", ADD)).contains("[11,22,33,44]", "[9,18,27,36]");
        assertThat(post(server, "echo", ECHO)).contains("[5,7]");
    }

    private static boolean isOk(InstalledServer server) {
        try {
            return server.get("/v2/health/ready").statusCode() == 200;
        } catch (IOException e) {
            return false;
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    private static String post(InstalledServer server, String model, String body) {
        try {
            return server.post("/v2/models/" + model + "/infer", body).body();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    private void assertNothingMapped(InstalledServer server) throws IOException {
        Path maps = Path.of("/proc/" + server.pid() + "/maps");
        if (Files.isReadable(maps)) {
            assertThat(Files.readString(maps))
                    .contains("/weights.bin") // of the copy
                    .doesNotContain(models.directory().toRealPath().toString());
        }
    }

    /** Lists the directories with private copies of versions. */
    private List<Path> copies() {
        Path parent = owned();
        try (Stream<Path> found = parent == null ? Stream.empty() : Files.list(parent)) {
            return found.toList();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private @Nullable Path owned() {
        try (Stream<Path> found = Files.list(cache)) {
            return found.filter(path -> path.getFileName().toString().startsWith("mapped-") && Files.isDirectory(path))
                    .findFirst()
                    .orElse(null);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private void copyExternal(String model) throws IOException {
        for (String file : List.of("model.onnx", "weights.bin")) {
            Files.copy(
                    EXTERNAL.resolve(file),
                    models.directory().resolve(model).resolve("1").resolve(file));
        }
    }

    private static List<Path> files(Path directory) throws IOException {
        try (Stream<Path> all = Files.walk(directory)) {
            return all.filter(Files::isRegularFile).toList();
        }
    }

    private static byte[] newWeights() {
        ByteBuffer weights = ByteBuffer.allocate(64 * Float.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        while (weights.hasRemaining()) {
            weights.putFloat(7);
        }
        return weights.array();
    }

    /** Writes into a file that may be mapped, as {@code cp} does. */
    private static void overwrite(Path file, byte[] content) throws IOException {
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
            channel.write(ByteBuffer.wrap(content));
            channel.truncate(content.length);
        }
    }
}
