package dev.nereid.distribution.deploy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.nereid.distribution.testing.InstalledServer;
import dev.nereid.distribution.testing.PageScript;
import java.io.IOException;
import java.net.ConnectException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The image with PyTorch: read-only, by a foreign user without a home directory. */
@Timeout(600)
@Tag("slow")
final class PyTorchImageIT {
    private static final long MAX_BYTES = 260_000_000;
    private static final long SECONDS_TO_START = 120;
    private static final long SECONDS_TO_STOP = 60;
    private static final Path EXAMPLES = InstalledServer.CHECKOUT.resolve("examples/pytorch-models");
    private static final String MODEL = "digits_torchscript";

    @TempDir
    private static Path directory;

    private static Path output;
    private static ImageRoot image;

    @BeforeAll
    static void assemble() throws Exception {
        assumeTrue(Files.isExecutable(Path.of("/usr/bin/dpkg-query")), "packages of Debian: not on this system");
        assumeTrue(ImageRoot.machine().equals("x86_64"), "the libraries of PyTorch are for x86-64");
        Tool.requireMounts();
        output = directory.resolve("output");
        ImageRoot.assemble(output, "--pytorch");
        Path file = output.resolve("nereid-test-linux-x86_64.oci.tar");
        assertThat(Files.size(file)).as("bytes of the image").isLessThan(MAX_BYTES);
        image = ImageRoot.unpack(file, directory);
        image.addModels(EXAMPLES);
    }

    @Test
    void thePluginIsALayerAndInTheArchive() throws Exception {
        assertThat(image.layout().manifest().getAsJsonArray("layers")).hasSize(4);
        assertThat(image.directory().resolve("opt/nereid/plugins/tensorflow")).doesNotExist();
        assertThat(image.directory().resolve("opt/nereid/plugins/pytorch/sbom.cdx.json"))
                .isNotEmptyFile();
        assertThat(Tool.succeed(output, "tar", "-tzf", "nereid-test-linux-x86_64.tar.gz"))
                .contains("/plugins/pytorch/natives/pytorch-", "/plugins/tensorflow/natives/");
    }

    @Test
    void servesWithTheLibrariesOfTheImage() throws Exception {
        int port = PageScript.freePort();
        Path log = directory.resolve("log.txt");
        Process server = image.serve("exec", log, "--http-port=" + port);
        try (HttpClient client = HttpClient.newHttpClient()) {
            HttpRequest request = HttpRequest.newBuilder(
                            URI.create("http://localhost:" + port + "/v2/models/" + MODEL + "/infer"))
                    .POST(HttpRequest.BodyPublishers.ofFile(EXAMPLES.resolve(MODEL + "/request.json")))
                    .build();

            assertThat(infer(server, log, client, request)).contains("\"seven\"");
            server.destroy();
            assertThat(server.waitFor(SECONDS_TO_STOP, TimeUnit.SECONDS)).isTrue();
            assertThat(server.exitValue()).as(Files.readString(log)).isZero();
        } finally {
            server.destroyForcibly();
        }
    }

    /** Sends a request as soon as the server listens. */
    private static String infer(Process server, Path log, HttpClient client, HttpRequest request)
            throws IOException, InterruptedException {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(SECONDS_TO_START);
        while (true) {
            assertThat(server.isAlive() && System.nanoTime() - end < 0)
                    .as(Files.readString(log))
                    .isTrue();
            try {
                HttpResponse<String> response = client.send(request, HttpResponse.BodyHandlers.ofString());
                if (response.statusCode() == 200) {
                    return response.body();
                }
            } catch (ConnectException e) {
                // Not yet.
            }
            server.waitFor(100, TimeUnit.MILLISECONDS);
        }
    }
}
