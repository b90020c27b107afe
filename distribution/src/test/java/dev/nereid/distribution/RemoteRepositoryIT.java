package dev.nereid.distribution;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.distribution.testing.Eventually;
import dev.nereid.distribution.testing.InstalledServer;
import dev.nereid.distribution.testing.Repository;
import dev.nereid.storage.s3.testing.S3Server;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests that the installed server serves models from a server of the S3 protocol. */
@Tag("slow")
final class RemoteRepositoryIT {
    private static final String EXAMPLES =
            "--backend-directory=" + InstalledServer.CHECKOUT.resolve("examples/plugins");

    /** Objects that take some time to be copied, one by one. */
    private static final int MANY = 150;

    @TempDir
    private static Path objects;

    private static S3Server store;

    @TempDir
    private Path directory;

    private Path copies;

    @BeforeAll
    static void start() throws IOException {
        store = S3Server.start(objects);
        store.putAll("onnx/add_sub", InstalledServer.MODELS.resolve("add_sub"));
        store.put("many/echo/config.pbtxt", Repository.identity(8, "INT32", "[2]", ""));
        for (int i = 0; i < MANY; i++) {
            store.put("many/echo/1/part" + i, "part " + i);
        }
    }

    @AfterAll
    static void stop() {
        store.close();
    }

    @BeforeEach
    void createDirectory() throws IOException {
        copies = Files.createDirectory(directory.resolve("copies"));
    }

    @Test
    void servesAModelFromS3() throws Exception {
        try (InstalledServer server = InstalledServer.serve(environment(), url("onnx"))) {
            awaitReady(server);
            String body = """
                    {"inputs": [
                      {"name": "INPUT0", "datatype": "INT32", "shape": [1, 4], "data": [10, 20, 30, 40]},
                      {"name": "INPUT1", "datatype": "INT32", "shape": [1, 4], "data": [1, 2, 3, 4]}]}""";
            assertThat(server.post("/v2/models/add_sub/infer", body).body()).contains("[11,22,33,44]", "[9,18,27,36]");
            server.interrupt();
            InstalledServer.Result result = server.awaitEnd();
            assertThat(result.status()).isZero();
            assertThat(result.out() + result.err())
                    .contains("model copied from its repository")
                    .doesNotContain("SLF4J");
        }
        assertThat(models()).as("the copy stays").hasSize(1);

        try (InstalledServer server = InstalledServer.serve(environment(), url("onnx"))) {
            awaitReady(server);
            server.interrupt();
            InstalledServer.Result result = server.awaitEnd();
            assertThat(result.out() + result.err())
                    .as("nothing is downloaded again")
                    .doesNotContain("model copied from its repository");
        }
    }

    @Test
    void takesCredentialsFromAFile() throws Exception {
        Path file = Files.writeString(
                directory.resolve("credentials.json"),
                "{\"s3\": {\"%s\": {\"key_id\": \"a\", \"secret_key\": \"b\", \"region\": \"us-east-1\"}}}"
                        .formatted(url("onnx")));
        Map<String, String> environment = new HashMap<>(environment());
        environment.keySet().removeIf(name -> name.startsWith("AWS_") && !name.equals("AWS_EC2_METADATA_DISABLED"));
        environment.put("TRITON_CLOUD_CREDENTIAL_PATH", file.toString());

        try (InstalledServer server = InstalledServer.serve(environment, url("onnx"))) {
            awaitReady(server);
        }

        InstalledServer.Result other =
                InstalledServer.run(environment, "serve", "--model-repository=" + url("many"), "--http-port=0");
        assertThat(other.status()).isNotZero();
        assertThat(other.err()).contains("Cannot match credential for path  " + url("many"));
    }

    /** The next start serves complete models, whenever the one before was killed. */
    @Test
    void servesCompleteModelsAfterAKill() throws Exception {
        for (int files : new int[] {1, 40}) {
            try (InstalledServer server = InstalledServer.begin(environment(), url("many"), EXAMPLES)) {
                Eventually.holds("files that are copied", 60, () -> copied() >= files);
                server.signal("KILL");
                assertThat(server.awaitEnd().status()).isEqualTo(137);
            }
            assertThat(models())
                    .as("complete copies after a kill at %d files", files)
                    .isEmpty();
            assertThat(copied()).isPositive();
        }

        try (InstalledServer server = InstalledServer.serve(environment(), url("many"), EXAMPLES)) {
            awaitReady(server);
            String body = """
                    {"inputs": [{"name": "INPUT0", "datatype": "INT32", "shape": [1, 2], "data": [5, 7]}]}""";
            assertThat(server.post("/v2/models/echo/infer", body).body()).contains("[5,7]");
        }
        assertThat(copied()).as("what the killed servers left is deleted").isZero();
        assertThat(models()).singleElement().satisfies(model -> {
            try (Stream<Path> parts = Files.list(model.resolve("1"))) {
                assertThat(parts).hasSize(MANY);
            }
        });
    }

    @Test
    void followsTheObjectsInThePollMode() throws Exception {
        for (String model : List.of("still", "moving")) {
            store.put("polled/" + model + "/config.pbtxt", Repository.identity(8, "INT32", "[2]", ""));
            store.put("polled/" + model + "/1/part", "x");
        }
        try (InstalledServer server = InstalledServer.serve(
                environment(), url("polled"), EXAMPLES, "--model-control-mode=poll", "--repository-poll-secs=1")) {
            awaitReady(server);

            store.put("polled/moving/2/part", "x");
            Eventually.holds("version 2", 60, () -> isOk(server, "/v2/models/moving/versions/2/ready"));
            assertThat(isOk(server, "/v2/models/moving/versions/1/ready")).isFalse();

            for (String object : List.of("config.pbtxt", "1/part", "2/part")) {
                store.delete("polled/moving/" + object);
            }
            Eventually.holds("unload", 60, () -> !isOk(server, "/v2/models/moving/ready"));
            assertThat(isOk(server, "/v2/models/still/ready")).isTrue();
            Eventually.holds("one copy", 60, this::isOneCopy);
            server.interrupt();
            InstalledServer.Result result = server.awaitEnd();
            assertThat(Pattern.compile("model copied from its repository")
                            .matcher(result.out() + result.err())
                            .results())
                    .as("what has not changed is not copied again")
                    .hasSize(3);
        }
    }

    /** The budget has room for one of the models. */
    @Test
    void loadsAndEvictsModelsOnDemand() throws Exception {
        for (String model : List.of("one", "two")) {
            store.put("demand/" + model + "/config.pbtxt", Repository.identity(8, "INT32", "[2]", ""));
            store.put("demand/" + model + "/1/part", "x");
        }
        try (InstalledServer server = InstalledServer.serve(
                environment(),
                url("demand"),
                EXAMPLES,
                "--model-control-mode=demand",
                "--model-memory-budget=900000")) {
            awaitReady(server);
            for (String model : List.of("one", "two", "one", "two", "two")) {
                String body = """
                        {"inputs": [{"name": "INPUT0", "datatype": "INT32", "shape": [1, 2], "data": [1, 2]}]}""";
                assertThat(server.post("/v2/models/" + model + "/infer", body).body())
                        .contains("\"data\":[1,2]");
                assertThat(isOk(server, "/v2/models/one/ready")).isTrue();
            }

            assertThat(server.metrics("GET", "/metrics").body())
                    .contains("\nnereid_model_demand_loads_total 4\n", "\nnereid_model_evictions_total 3\n");
            server.interrupt();
            InstalledServer.Result result = server.awaitEnd();
            assertThat(Pattern.compile("model copied from its repository")
                            .matcher(result.out() + result.err())
                            .results())
                    .as("evicted models come back from their copies")
                    .hasSize(2);
        }
    }

    @Test
    void checksARemoteRepository() throws Exception {
        store.put("checked/good/config.pbtxt", Repository.identity(8, "INT32", "[2]", ""));
        store.put("checked/good/1/part", "x");
        store.put("checked/bad/config.pbtxt", "max_batch: 3");
        store.put("checked/bad/1/part", "x");

        InstalledServer.Result result = InstalledServer.run(environment(), "check", url("checked"), EXAMPLES);

        assertThat(result.status()).isEqualTo(1);
        assertThat(result.out()).contains("good", "bad", "max_batch_size");
        assertThat(InstalledServer.run(environment(), "check", url("nothing").replace("s3:", "nas:"))
                        .err())
                .contains("no plugin for 'nas://'");
    }

    @Test
    void reportsARepositoryThatIsNotThere() throws Exception {
        String url = "s3://" + store.address() + "/no-such-bucket/models";

        InstalledServer.Result result = InstalledServer.run(
                environment(),
                "serve",
                "--model-repository=" + url,
                "--http-port=0",
                "--grpc-port=0",
                "--metrics-port=0");

        assertThat(result.status()).isNotZero();
        assertThat(result.err())
                .contains("model repository '" + url + "': cannot be listed: bucket 'no-such-bucket'", "NoSuchBucket");
    }

    @Test
    void theServerItselfHasNoClassOfTheSdk() throws IOException {
        try (Stream<Path> jars = Files.list(InstalledServer.HOME.resolve("lib"));
                Stream<Path> plugin = Files.list(InstalledServer.HOME.resolve("storage/s3"))) {
            List<String> ofPlugin =
                    plugin.map(jar -> jar.getFileName().toString()).toList();
            assertThat(ofPlugin).anyMatch(jar -> jar.startsWith("s3-"));
            assertThat(jars.map(jar -> jar.getFileName().toString()))
                    .noneMatch(
                            jar -> jar.startsWith("nereid-storage") || (ofPlugin.contains(jar) && jar.contains("sdk")));
        }
    }

    private static String url(String path) {
        return "s3://" + store.address() + "/" + S3Server.BUCKET + "/" + path;
    }

    private Map<String, String> environment() {
        return Map.of(
                "AWS_ACCESS_KEY_ID", "key",
                "AWS_SECRET_ACCESS_KEY", "secret",
                "AWS_DEFAULT_REGION", "us-east-1",
                "AWS_EC2_METADATA_DISABLED", "true",
                "TRITON_AWS_MOUNT_DIRECTORY", copies.toString());
    }

    private static void awaitReady(InstalledServer server) {
        Eventually.holds("ready", TimeUnit.MINUTES.toSeconds(2), () -> isOk(server, "/v2/health/ready"));
    }

    private static boolean isOk(InstalledServer server, String path) {
        try {
            return server.get(path).statusCode() == 200;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Lists the directories of the models of complete copies. */
    private List<Path> models() {
        try (Stream<Path> all = Files.find(
                copies,
                4,
                (path, attributes) -> attributes.isDirectory()
                        && path.getNameCount() == copies.getNameCount() + 4
                        && path.getParent().getParent().getFileName().toString().equals("copies"))) {
            return all.toList();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private boolean isOneCopy() {
        try {
            return models().size() == 1;
        } catch (UncheckedIOException e) {
            return false; // a directory that is deleted meanwhile
        }
    }

    /** Counts the files of incomplete copies. */
    private int copied() {
        try (Stream<Path> all = Files.walk(copies)) {
            return (int) all.filter(path -> path.toString().contains("/partial/"))
                    .filter(path -> path.getFileName().toString().startsWith("part"))
                    .filter(Files::isRegularFile)
                    .count();
        } catch (IOException | UncheckedIOException e) {
            return 0; // a directory that is deleted meanwhile
        }
    }
}
