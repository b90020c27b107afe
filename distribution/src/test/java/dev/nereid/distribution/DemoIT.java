package dev.nereid.distribution;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.distribution.testing.InstalledServer;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** The demonstration, and the lines that a server prints for its users' shells. */
@Tag("slow")
final class DemoIT {
    @Test
    void showsAPictureOverBothProtocolsAndEnds() throws IOException, InterruptedException {
        InstalledServer.Result result =
                InstalledServer.run("demo", "--exit", "--http-port=0", "--grpc-port=0", "--metrics-port=0");

        String star = "star (0\\.9\\d+|1\\.0+), on \\d+ % of the picture; from ensemble_model: "
                + "image_preprocess_model, then classification_model and segmentation_model$";
        assertThat(result.status()).isZero();
        assertThat(result.out())
                .containsPattern("(?m)^digits +1 +READY$")
                .containsPattern("(?m)^digit_7_0.png over HTTP: seven (0\\.99\\d+|1\\.0+)$")
                .containsPattern("(?m)^digit_7_0.png over gRPC: seven (0\\.99\\d+|1\\.0+)$")
                .containsPattern("(?m)^star.png over HTTP: " + star)
                .containsPattern("(?m)^star.png over gRPC: " + star)
                .contains("\"data\": [10, 20, 30, 40]", "\"data\": [1, 2, 3, 4]");
        assertThat(result.err().lines().filter(line -> !line.contains(" INFO ")))
                .isEmpty();
    }

    @Test
    void printsLinesThatCanBePastedIntoAShell() throws IOException, InterruptedException {
        try (InstalledServer server = InstalledServer.serve(InstalledServer.MODELS)) {
            List<String> lines =
                    server.out().lines().filter(line -> line.contains("curl")).toList();

            assertThat(lines).hasSize(2);
            for (String line : lines) {
                Process shell = new ProcessBuilder("/bin/sh", "-c", line).start();
                String response = new String(shell.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
                assertThat(shell.waitFor()).isZero();
                assertThat(response).startsWith("{\"model_name\":").contains("\"outputs\":[{");
            }
        }
    }
}
