package dev.nereid.distribution;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.distribution.testing.InstalledServer;
import java.io.IOException;
import java.util.Map;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** The training load of nereid-aot. */
@Tag("slow")
final class TrainingIT {
    @Test
    void completesManyRequestsOverBothProtocolsAndExits() throws IOException, InterruptedException {
        InstalledServer.Result result = InstalledServer.run(
                Map.of("NEREID_JAVA_OPTIONS", "-XX:Tier4InvocationThreshold=10000"),
                "demo",
                "--train=2",
                "--http-port=0",
                "--grpc-port=0",
                "--metrics-port=0",
                "--model-repository=" + InstalledServer.HOME.resolve("training/models"),
                "--backend-directory=" + InstalledServer.HOME.resolve("training/plugins"));

        assertThat(result.status()).as(result.err()).isZero();
        assertThat(result.out()).containsPattern("(?m)^trained: \\d{2,} over HTTP, \\d{2,} over gRPC$");
    }

    @Test
    void failsWithOneLineWithoutItsModel() throws IOException, InterruptedException {
        InstalledServer.Result result =
                InstalledServer.run("demo", "--train=1", "--http-port=0", "--grpc-port=0", "--metrics-port=0");

        assertThat(result.status()).isNotZero();
        assertThat(result.err()).contains("nereid demo: inference failed: training: ");
    }
}
