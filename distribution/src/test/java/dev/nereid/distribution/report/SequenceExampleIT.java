package dev.nereid.distribution.report;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.ModelRef;
import dev.nereid.distribution.testing.TestPaths;
import dev.nereid.distribution.testing.TestServer;
import dev.nereid.server.NereidServer;
import dev.nereid.server.options.ServerOptions;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Runs the lines that the report prints for models with sequences. */
class SequenceExampleIT {
    @Test
    void theLineCanBeRunAgainAndAgain() throws IOException, InterruptedException {
        ServerOptions options = ServerOptions.of(TestPaths.checkout().resolve("examples/plugin-models"))
                .withPlugins(TestPaths.plugins());
        try (TestServer server = TestServer.open(NereidServer.start(options))) {
            CurlExample example = new CurlExample("http://127.0.0.1:" + server.httpPort(), CurlExample.Values.ZEROS);
            for (String model : List.of("sequence", "dyna_sequence", "sequence")) {
                ModelRef latest = ModelRef.latest(model);
                String line = example.line(
                                server.server().models().metadata(latest),
                                server.server().models().config(latest))
                        .orElseThrow();
                Process shell = new ProcessBuilder("/bin/sh", "-c", line).start();
                String response = new String(shell.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
                assertThat(shell.waitFor()).isZero();
                assertThat(response).startsWith("{\"model_name\":\"" + model).contains("\"outputs\":[{");
            }
        }
    }
}
