package dev.nereid.distribution.execution;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.distribution.testing.GatedPlugin;
import dev.nereid.distribution.testing.InstalledServer;
import dev.nereid.distribution.testing.Repository;
import java.io.IOException;
import java.nio.file.Path;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The rate limiter of the installed server. */
@Tag("slow")
final class RateLimitIT {
    private static final String REQUEST =
            "{\"inputs\": [{\"name\": \"INPUT0\", \"datatype\": \"FP32\", \"shape\": [1, 2], \"data\": [1, 2]}]}";

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
