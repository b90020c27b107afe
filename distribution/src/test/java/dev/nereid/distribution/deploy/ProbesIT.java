package dev.nereid.distribution.deploy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.distribution.testing.Eventually;
import dev.nereid.distribution.testing.GatedPlugin;
import dev.nereid.distribution.testing.InstalledServer;
import dev.nereid.distribution.testing.PageScript;
import dev.nereid.distribution.testing.Repository;
import java.io.IOException;
import java.net.ConnectException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Tests probes while models load and while one is broken, as docs/operations.md says. */
@Timeout(300)
@Tag("slow")
final class ProbesIT {
    private static final String LIVE = "/v2/health/live";
    private static final String READY = "/v2/health/ready";

    @TempDir
    private Path directory;

    /** A startup probe therefore needs no readiness: before the first loads have ended, no probe gets an answer. */
    @Test
    void thePortsOpenAfterTheFirstLoads() throws Exception {
        Repository models = gated("first");
        Path gate = GatedPlugin.close(models, "first", "load");
        int port = PageScript.freePort();
        try (InstalledServer server = InstalledServer.begin(
                Map.of(), models.directory().toString(), plugins(), "--http-port=" + port, "--log-format=json")) {
            Eventually.holds("loading", 60, () -> GatedPlugin.isWaitedAt(gate));

            assertThatThrownBy(() -> status(port, LIVE)).isInstanceOf(ConnectException.class);

            GatedPlugin.open(gate);
            Eventually.holds("serving", 60, () -> server.errSoFar().contains("\"serving\""));
            assertThat(status(port, LIVE)).isEqualTo(200);
            assertThat(status(port, READY)).isEqualTo(200);
        }
    }

    /** Nobody knows yet whether it fails, and a load by a client that fails must not take the server out of service. */
    @Test
    void aLaterLoadEndsNeitherReadinessNorLiveness() throws Exception {
        Repository models = gated("first");
        try (InstalledServer server = InstalledServer.serve(
                models.directory(), plugins(), "--model-control-mode=explicit", "--load-model=first")) {
            gated("second");
            Path gate = GatedPlugin.close(models, "second", "load");
            CompletableFuture<Integer> load = CompletableFuture.supplyAsync(
                    () -> post(server, "/v2/repository/models/second/load"), InstalledServer.BLOCKING);
            Eventually.holds("loading", 60, () -> GatedPlugin.isWaitedAt(gate));

            assertThat(server.get(LIVE).statusCode()).isEqualTo(200);
            assertThat(server.get(READY).statusCode()).isEqualTo(200);
            assertThat(server.get("/v2/models/second/ready").statusCode()).isNotEqualTo(200);
            assertThat(server.get("/v2/models/first/ready").statusCode()).isEqualTo(200);

            GatedPlugin.open(gate);
            assertThat(load.join()).isEqualTo(200);
            assertThat(server.get(READY).statusCode()).isEqualTo(200);
        }
    }

    @Test
    void aBrokenModelEndsReadinessUnlessItIsLenient() throws Exception {
        Repository models = gated("good").onnx("broken", Files.writeString(directory.resolve("file"), "broken"));
        try (InstalledServer server = InstalledServer.serve(models.directory(), plugins(), "--exit-on-error=false")) {
            assertThat(server.get(LIVE).statusCode()).isEqualTo(200);
            assertThat(server.get(READY).statusCode()).isEqualTo(400);
        }
        try (InstalledServer server = InstalledServer.serve(
                models.directory(), plugins(), "--exit-on-error=false", "--strict-readiness=false")) {
            assertThat(server.get(READY).statusCode()).isEqualTo(200);
        }
    }

    private Repository gated(String model) {
        return new Repository(directory.resolve("models")).model(model, GatedPlugin.model());
    }

    private String plugins() {
        return "--backend-directory=" + GatedPlugin.pack(directory.resolve("plugins"));
    }

    private static int status(int port, String path) throws IOException, InterruptedException {
        try (HttpClient client = HttpClient.newHttpClient()) {
            return client.send(
                            HttpRequest.newBuilder(URI.create("http://localhost:" + port + path))
                                    .build(),
                            HttpResponse.BodyHandlers.discarding())
                    .statusCode();
        }
    }

    private static int post(InstalledServer server, String path) {
        try {
            return server.post(path, "{}").statusCode();
        } catch (IOException e) {
            throw new AssertionError(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new AssertionError(e);
        }
    }
}
