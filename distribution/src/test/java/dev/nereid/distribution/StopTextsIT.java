package dev.nereid.distribution;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.distribution.testing.Eventually;
import dev.nereid.distribution.testing.InstalledServer;
import dev.nereid.distribution.testing.Repository;
import dev.nereid.distribution.testing.Texts;
import io.grpc.ManagedChannel;
import java.io.IOException;
import java.net.URI;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** SIGTERM of the installed server while texts are generated step by step. */
@Tag("slow")
final class StopTextsIT {
    private static final int COUNT = 20_000;
    private static final int SECONDS = 60;

    @TempDir
    private Path directory;

    @Test
    void textsAreCompletedWithinTheTime() throws Exception {
        try (InstalledServer server = serve("60")) {
            ManagedChannel channel = Texts.channel(server.address("gRPC"));
            try (Texts grpc = Texts.overGrpc(channel, COUNT);
                    Texts http = Texts.overHttp(port(server), COUNT)) {
                Eventually.holds("two texts", SECONDS, () -> metrics(server).contains(live(2)));

                server.signal("TERM");
                Eventually.holds("begins to stop", SECONDS, () -> isRefused(server));

                assertThat(grpc.readAll()).isEqualTo(Texts.complete(COUNT, "a"));
                assertThat(http.readAll()).isEqualTo(Texts.complete(COUNT, "a"));
                assertThat(server.awaitEnd().status()).isZero();
            } finally {
                channel.shutdownNow().awaitTermination(SECONDS, TimeUnit.SECONDS);
            }
        }
    }

    @Test
    void textsThatTakeLongerEndWithAnError() throws Exception {
        try (InstalledServer server = serve("1")) {
            ManagedChannel channel = Texts.channel(server.address("gRPC"));
            try (Texts grpc = Texts.overGrpc(channel, Integer.MAX_VALUE);
                    Texts http = Texts.overHttp(port(server), Integer.MAX_VALUE)) {
                CompletableFuture<List<String>> overGrpc = read(grpc);
                CompletableFuture<List<String>> overHttp = read(http);
                Eventually.holds("two texts", SECONDS, () -> metrics(server).contains(live(2)));

                server.signal("TERM");

                assertEnded(overGrpc.get(SECONDS, TimeUnit.SECONDS));
                assertEnded(overHttp.get(SECONDS, TimeUnit.SECONDS));
                assertThat(server.awaitEnd().status()).isEqualTo(1);
            } finally {
                channel.shutdownNow().awaitTermination(SECONDS, TimeUnit.SECONDS);
            }
        }
    }

    /** All texts are there up to the error. */
    private static void assertEnded(List<String> texts) {
        int count = texts.size() - 1;
        assertThat(texts.getLast()).startsWith(Texts.ERROR).contains("Server is stopping");
        assertThat(texts.subList(0, count)).isEqualTo(Texts.complete(count, "a"));
    }

    private static CompletableFuture<List<String>> read(Texts texts) {
        return CompletableFuture.supplyAsync(
                () -> {
                    try {
                        return texts.readAll();
                    } catch (Exception e) {
                        throw new IllegalStateException(e);
                    }
                },
                InstalledServer.BLOCKING);
    }

    private InstalledServer serve(String exitTimeoutSeconds) throws IOException {
        Repository models = new Repository(directory.resolve("models"))
                .model("stepping", Texts.model("a", directory.resolve("ends")));
        return InstalledServer.serve(
                models.directory(),
                "--backend-directory=" + Texts.pack(directory.resolve("plugins")),
                "--exit-timeout-secs=" + exitTimeoutSeconds);
    }

    private static int port(InstalledServer server) {
        return URI.create(server.address("HTTP")).getPort();
    }

    private static String live(int count) {
        return "nereid_sequence_live{model=\"stepping\",version=\"1\"} " + count + "\n";
    }

    /** Returns whether new connections are refused because the server exits. */
    private static boolean isRefused(InstalledServer server) {
        try {
            return server.get("/v2/health/ready").body().contains("Server exiting");
        } catch (IOException | InterruptedException e) {
            return false;
        }
    }

    private static String metrics(InstalledServer server) {
        try {
            return server.metrics("GET", "/metrics").body();
        } catch (IOException | InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
