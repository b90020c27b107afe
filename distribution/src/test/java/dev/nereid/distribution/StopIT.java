package dev.nereid.distribution;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** How the installed server ends. */
final class StopIT {
    private static final String REQUEST =
            "{\"inputs\": [{\"name\": \"INPUT0\", \"datatype\": \"FP32\", \"shape\": [2], \"data\": [1, 2]}]}";

    @TempDir
    private Path folder;

    @Test
    void endsWithoutComplaintWhenInterrupted() throws IOException, InterruptedException {
        InstalledServer server = InstalledServer.serve(InstalledServer.MODELS);

        InstalledServer.Result result = server.interrupt();

        assertThat(result.status()).isZero();
        assertThat(result.err().lines().filter(line -> !line.contains(" INFO ")))
                .isEmpty();
    }

    @Test
    void answersWhatItHasBeforeItEnds() throws IOException, InterruptedException {
        InstalledServer server = serveSlow(1_000, "30");
        CompletableFuture<HttpResponse<String>> answer = ask(server);

        InstalledServer.Result result = server.interrupt();

        assertThat(result.status()).isZero();
        assertThat(answer.join().body()).contains("[1.0,2.0]");
    }

    @Test
    void givesRequestsUpThatTakeTooLong() throws IOException, InterruptedException {
        InstalledServer server = serveSlow(3_600_000, "1");
        CompletableFuture<HttpResponse<String>> answer = ask(server);

        InstalledServer.Result result = server.interrupt();

        assertThat(result.status()).isNotZero();
        assertThat(result.err()).contains("nereid");
        assertThat(answer).failsWithin(java.time.Duration.ofSeconds(30));
    }

    private InstalledServer serveSlow(int delayMillis, String exitTimeout) throws IOException {
        Path model = Files.createDirectories(folder.resolve("slow/1")).getParent();
        Files.writeString(model.resolve("config.pbtxt"), """
                backend: "identity"
                input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
                output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
                parameters [ { key: "execute_delay_ms" value: { string_value: "%d" } } ]
                """.formatted(delayMillis));
        return InstalledServer.serve(
                folder,
                "--backend-directory=" + InstalledServer.CHECKOUT.resolve("examples/plugins"),
                "--exit-timeout-secs=" + exitTimeout);
    }

    /** Asks, and returns once the request is being executed: its memory is then in use. */
    private static CompletableFuture<HttpResponse<String>> ask(InstalledServer server)
            throws IOException, InterruptedException {
        CompletableFuture<HttpResponse<String>> answer = CompletableFuture.supplyAsync(() -> {
            try {
                return server.post("/v2/models/slow/infer", REQUEST);
            } catch (IOException | InterruptedException e) {
                throw new IllegalStateException(e);
            }
        });
        while (server.metrics("GET", "/metrics").body().contains("nereid_tensor_memory_used_bytes 0.0")) {
            Thread.onSpinWait();
        }
        return answer;
    }
}
