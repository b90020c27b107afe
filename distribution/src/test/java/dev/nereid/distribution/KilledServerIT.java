package dev.nereid.distribution;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.distribution.testing.Eventually;
import dev.nereid.distribution.testing.InstalledServer;
import dev.nereid.distribution.testing.Repository;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Servers that are killed while they load: the next start serves what is complete, and says what is wrong with the rest.
 * For loads from S3 see {@link RemoteRepositoryIT}.
 */
@Tag("slow")
final class KilledServerIT {
    private static final String EXAMPLES =
            "--backend-directory=" + InstalledServer.CHECKOUT.resolve("examples/plugins");
    private static final String BODY = """
            {"inputs": [{"name": "INPUT0", "datatype": "INT32", "shape": [1, 2], "data": [5, 7]}]}""";

    /** Large enough to be killed while it is written. */
    private static final int FILE_BYTES = 40 << 20;

    @TempDir
    private Path directory;

    private Path cache;
    private Repository models;

    @BeforeEach
    void setUp() throws IOException {
        cache = Files.createDirectory(directory.resolve("cache"));
        models = new Repository(Files.createDirectory(directory.resolve("models")));
        models.model("echo", Repository.identity(8, "INT32", "[2]", ""));
    }

    @Test
    void servesTheRepositoryAfterAKillDuringTheLoadOfClientsFiles() throws Exception {
        String content = Base64.getEncoder().encodeToString(new byte[FILE_BYTES]);
        String body = "{\"parameters\":{\"config\":\"{\\\"backend\\\":\\\"identity\\\",\\\"max_batch_size\\\":3}\","
                + "\"file:1/large.bin\":\"" + content + "\"}}";
        try (InstalledServer server = explicit()) {
            awaitStart(server);
            CompletableFuture<Void> load = CompletableFuture.runAsync(
                    () -> {
                        try {
                            server.post("/v2/repository/models/echo/load", body);
                        } catch (IOException e) {
                            // the server was killed
                        } catch (InterruptedException e) {
                            Thread.currentThread().interrupt();
                        }
                    },
                    InstalledServer.BLOCKING);
            Eventually.holds(
                    "files of the client", 60, () -> overrides().stream().anyMatch(this::isFile));
            server.signal("KILL");
            assertThat(server.awaitEnd().status()).isEqualTo(137);
            load.join();
        }
        assertThat(overrides()).as("what the killed server left").isNotEmpty();

        try (InstalledServer server = explicit()) {
            awaitStart(server);
            assertThat(overrides()).isEmpty();
            assertThat(server.post("/v2/repository/models/echo/load", "{}").statusCode())
                    .isEqualTo(200);
            assertThat(server.post("/v2/models/echo/infer", BODY).body()).contains("[5,7]");
            assertThat(server.get("/v2/models/echo/config").body()).contains("\"max_batch_size\":8");
        }
    }

    @Test
    void servesWhatIsCompleteAfterAKillDuringAPoll() throws Exception {
        Path broken =
                Files.createDirectories(models.directory().resolve("growing/1")).getParent();
        String config = Repository.identity(8, "INT32", "[2]", "");
        String half = config.substring(0, config.indexOf('{') + 1);
        try (InstalledServer server = poll()) {
            awaitReady(server, "echo");
            Files.writeString(broken.resolve("config.pbtxt"), half);
            models.model("second", config);
            Eventually.holds("the poll", 60, () -> index(server).contains("\"growing\""));
            server.signal("KILL");
            assertThat(server.awaitEnd().status()).isEqualTo(137);
        }

        try (InstalledServer server = poll()) {
            awaitReady(server, "echo");
            awaitReady(server, "second");
            assertThat(server.post("/v2/models/second/infer", BODY).body()).contains("[5,7]");
            assertThat(index(server))
                    .contains(
                            "{\"name\":\"growing\",\"state\":\"UNAVAILABLE\",\"reason\":\"Internal: failed to read text"
                                    + " proto from growing/config.pbtxt: ");
            assertThat(server.get("/v2/models/growing/ready").statusCode()).isNotEqualTo(200);

            Files.writeString(broken.resolve("config.pbtxt"), config);
            awaitReady(server, "growing");
            assertThat(server.post("/v2/models/growing/infer", BODY).body()).contains("[5,7]");
        }
    }

    private InstalledServer explicit() throws IOException {
        return InstalledServer.serve(
                Map.of(),
                models.directory(),
                EXAMPLES,
                "--model-control-mode=explicit",
                "--plugin-cache-directory=" + cache);
    }

    private InstalledServer poll() throws IOException {
        return InstalledServer.serve(
                Map.of(),
                models.directory(),
                EXAMPLES,
                "--model-control-mode=poll",
                "--repository-poll-secs=1",
                "--exit-on-error=false",
                "--plugin-cache-directory=" + cache);
    }

    private static void awaitStart(InstalledServer server) {
        Eventually.holds("start", 60, () -> isOk(server, "/v2/health/ready"));
    }

    private static void awaitReady(InstalledServer server, String model) {
        Eventually.holds(model, 60, () -> isOk(server, "/v2/models/" + model + "/ready"));
    }

    private static boolean isOk(InstalledServer server, String path) {
        try {
            return server.get(path).statusCode() == 200;
        } catch (IOException e) {
            return false;
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static String index(InstalledServer server) {
        try {
            return server.post("/v2/repository/index", "{}").body();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private boolean isFile(Path path) {
        return path.endsWith("large.bin");
    }

    /** Lists the files of clients; they may be removed meanwhile. */
    private List<Path> overrides() {
        try (Stream<Path> all = Files.walk(cache)) {
            return all.filter(path -> path.toString().contains("overrides-")).toList();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
