package dev.nereid.distribution.execution;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.distribution.testing.Eventually;
import dev.nereid.distribution.testing.GatedPlugin;
import dev.nereid.distribution.testing.InstalledServer;
import dev.nereid.distribution.testing.Repository;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The rate limiter of the installed server. */
@Tag("slow")
final class RateLimitIT {
    private static final String REQUEST =
            "{\"inputs\": [{\"name\": \"INPUT0\", \"datatype\": \"FP32\", \"shape\": [1, 2], \"data\": [1, 2]}]}";

    private static final int EACH = 80;
    private static final int SECONDS = 120;

    @TempDir
    private Path directory;

    @Test
    void servesRateLimitedModels() throws IOException, InterruptedException {
        try (InstalledServer server = InstalledServer.serve(
                models().directory(),
                "--rate-limit=execution_count",
                "--rate-limit-resource=R:3:0",
                "--backend-directory=" + GatedPlugin.pack(directory.resolve("plugins")))) {
            for (int i = 0; i < 3; i++) {
                assertThat(server.post("/v2/models/limited/infer", REQUEST).body())
                        .contains("[1.0,2.0]");
            }
        }
    }

    @Test
    void doesNotStartWithAModelThatCouldNeverRun() throws IOException, InterruptedException {
        assertThat(start("--rate-limit=execution_count", "--rate-limit-resource=R:2")
                        .err())
                .contains("Resource count for \"R\" is limited to 2 which will prevent scheduling of one or more model"
                        + " instances, the minimum required count is 3");
        assertThat(start("--rate-limit=sometimes").err())
                .isEqualToIgnoringNewLines("nereid serve: --rate-limit: 'sometimes' (expected: off or execution_count);"
                        + " see nereid serve --help");
    }

    /**
     * The shares of the reference server's own test: of two models that cannot execute at the same time, each with
     * eight requests in flight, the one of priority 1 completes more than 1.8 times as many.
     */
    @Test
    void givesTheHigherPriorityTwiceTheExecutions() throws Exception {
        Path order = directory.resolve("order");
        Repository repository = new Repository(directory.resolve("models"))
                .model("first", exclusive(1))
                .model("second", exclusive(2))
                .model("holder", exclusive(1));
        Path gate = GatedPlugin.close(repository, "holder", "execute");
        try (InstalledServer server = InstalledServer.serve(
                        repository.directory(),
                        "--rate-limit=execution_count",
                        "--backend-config=gated,order=" + order,
                        "--backend-directory=" + GatedPlugin.pack(directory.resolve("plugins")));
                HttpClient client = HttpClient.newHttpClient()) {
            List<CompletableFuture<HttpResponse<String>>> responses = new ArrayList<>();
            responses.add(send(client, server, "holder"));
            Eventually.holds("held", SECONDS, () -> GatedPlugin.isWaitedAt(gate));
            for (int i = 0; i < EACH; i++) {
                responses.add(send(client, server, "second"));
                responses.add(send(client, server, "first"));
            }
            Eventually.holds("queued", SECONDS, () -> pending(server, "first") && pending(server, "second"));

            GatedPlugin.open(gate);

            for (CompletableFuture<HttpResponse<String>> response : responses) {
                assertThat(response.get(SECONDS, TimeUnit.SECONDS).statusCode()).isEqualTo(200);
            }
        }
        // A client of the first model that sends its last request at the 72nd response ends its test there; a client of
        // the second model has sent eight more requests than it has responses.
        List<String> executions = Files.readAllLines(order);
        int inFlight = 8;
        int sent = 0;
        int sentOfSecond = inFlight;
        for (int i = 0; sent < EACH - inFlight; i++) {
            switch (executions.get(i)) {
                case "first" -> sent++;
                case "second" -> sentOfSecond++;
                default -> assertThat(i).as("the holder goes first").isZero();
            }
        }
        assertThat(EACH / (double) sentOfSecond).isGreaterThan(1.8).isLessThanOrEqualTo(2);
    }

    private static String exclusive(int priority) {
        return GatedPlugin.model()
                + "instance_group { count: 1 kind: KIND_CPU rate_limiter { resources { name: \"R\" count: 1 } priority: "
                + priority + " } }";
    }

    private static CompletableFuture<HttpResponse<String>> send(
            HttpClient client, InstalledServer server, String model) {
        return client.sendAsync(
                HttpRequest.newBuilder(URI.create(server.address("HTTP") + "/v2/models/" + model + "/infer"))
                        .version(HttpClient.Version.HTTP_1_1)
                        .POST(HttpRequest.BodyPublishers.ofString(REQUEST))
                        .build(),
                HttpResponse.BodyHandlers.ofString());
    }

    private static boolean pending(InstalledServer server, String model) {
        try {
            return server.metrics("GET", "/metrics")
                    .body()
                    .contains(
                            "nv_inference_pending_request_count{model=\"" + model + "\",version=\"1\"} " + EACH + "\n");
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    private InstalledServer.Result start(String... flags) throws IOException, InterruptedException {
        String[] all = new String[flags.length + 6];
        System.arraycopy(flags, 0, all, 6, flags.length);
        all[0] = "serve";
        all[1] = "--model-repository=" + models().directory();
        all[2] = "--backend-directory=" + GatedPlugin.pack(directory.resolve("plugins"));
        all[3] = "--http-port=0";
        all[4] = "--grpc-port=0";
        all[5] = "--metrics-port=0";
        InstalledServer.Result result = InstalledServer.run(all);
        assertThat(result.status()).isNotZero();
        return result;
    }

    private Repository models() {
        return new Repository(directory.resolve("models"))
                .model(
                        "limited",
                        GatedPlugin.model()
                                + "instance_group { count: 2 kind: KIND_CPU rate_limiter {"
                                + " resources { name: \"R\" count: 3 } priority: 2 } }");
    }
}
