package dev.nereid.distribution.deploy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.google.gson.JsonObject;
import dev.nereid.distribution.testing.Eventually;
import dev.nereid.distribution.testing.InstalledServer;
import dev.nereid.distribution.testing.PageScript;
import dev.nereid.distribution.testing.PythonProgram;
import java.io.IOException;
import java.net.ConnectException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The image with Python: read-only, by a foreign user, with 64 MB in {@code /dev/shm}. */
@Timeout(600)
@Tag("slow")
final class PythonImageIT {
    private static final long MAX_BYTES = 185_000_000;
    private static final long SECONDS_TO_START = 120;
    private static final long SECONDS_TO_STOP = 60;

    /** More than {@code /dev/shm} takes. */
    private static final int LARGE = 96 << 20;

    @TempDir
    private static Path directory;

    private static ImageRoot image;

    @BeforeAll
    static void assemble() throws Exception {
        assumeTrue(Files.isExecutable(Path.of("/usr/bin/dpkg-query")), "packages of Debian: not on this system");
        Tool.requireMounts();
        assumeTrue(
                PythonProgram.runs("/usr/bin/python3", "import numpy; assert '/dist-packages/' in numpy.__file__"),
                "not installed: python3-numpy");
        Path output = directory.resolve("output");
        ImageRoot.assemble(output, "--python");
        Path file = output.resolve("nereid-test-python-linux-" + ImageRoot.machine() + ".oci.tar");
        assertThat(output).isDirectoryContaining(path -> path.equals(file));
        assertThat(Files.size(file)).as("bytes of the image").isLessThan(MAX_BYTES);
        image = ImageRoot.unpack(file, directory);
        image.addModels(InstalledServer.MODELS);
        image.addModels(InstalledServer.CHECKOUT.resolve("examples/python/models"));
        addModel("increment", """
                backend: "python"
                input [ { name: "IN" data_type: TYPE_UINT8 dims: [ -1 ] } ]
                output [ { name: "OUT" data_type: TYPE_UINT8 dims: [ -1 ] } ]
                """, """
                import triton_python_backend_utils as pb_utils

                class TritonPythonModel:
                    def execute(self, requests):
                        arrays = [pb_utils.get_input_tensor_by_name(request, "IN").as_numpy() for request in requests]
                        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", array + 1)]) for array in arrays]
                """);
    }

    @Test
    void theTagSaysThatItHasPython() throws Exception {
        JsonObject annotations = image.layout().image().getAsJsonObject("annotations");
        assertThat(annotations.get("io.containerd.image.name").getAsString()).isEqualTo("localhost/nereid:test-python");
        Path packages = image.directory().resolve("var/lib/dpkg/status.d");
        assertThat(packages.resolve("python3-numpy")).content().contains("Package: python3-numpy\n");
        assertThat(image.directory().resolve("usr/share/doc/python3-numpy/copyright"))
                .isNotEmptyFile();
        assertThat(image.directory().resolve("bin/sh")).doesNotExist();
    }

    @Test
    void pythonHasByteCodeAndNumPy() throws Exception {
        List<String> command = image.command("exec");
        command.addAll(List.of(
                "/usr/bin/python3",
                "-c",
                "import numpy, os; print(os.path.exists(numpy.__cached__), numpy.linalg.inv(numpy.eye(2) * 2)[0, 0])"));

        assertThat(Tool.succeed(image.directory(), command.toArray(String[]::new)))
                .contains("True 0.5");
    }

    @Test
    void pythonModelsAreServed() throws Exception {
        int port = PageScript.freePort();
        Path log = directory.resolve("log.txt");
        Process server = image.serve("exec", log, "--http-port=" + port, "--exit-on-error=false");
        try (HttpClient client = HttpClient.newHttpClient()) {
            URI models = URI.create("http://localhost:" + port + "/v2/models/");
            awaitReady(server, log, client, models.resolve("read_digit/ready"));
            byte[] picture = Files.readAllBytes(InstalledServer.CHECKOUT.resolve("examples/images/digit_7_0.png"));
            byte[] digit = infer(client, models.resolve("read_digit/infer"), picture);
            assertThat(new String(digit, StandardCharsets.ISO_8859_1)).contains("\"label\": \"seven\"");

            byte[] large = new byte[LARGE];
            Arrays.fill(large, (byte) 41);
            byte[] incremented = infer(client, models.resolve("increment/infer"), large);
            assertThat(incremented).hasSizeGreaterThan(LARGE).endsWith(42, 42, 42, 42);
            assertThat(processes()).isNotEmpty();

            server.destroy();
            assertThat(server.waitFor(SECONDS_TO_STOP, TimeUnit.SECONDS)).isTrue();
            assertThat(server.exitValue()).as(Files.readString(log)).isZero();
            Eventually.holds(
                    "no process of a model is left", 10, () -> processes().isEmpty());
        } finally {
            server.destroyForcibly();
        }
    }

    /** Returns the processes of models of the foreign user. */
    private static List<ProcessHandle> processes() {
        return ProcessHandle.allProcesses()
                .filter(process -> {
                    Path status = Path.of("/proc", String.valueOf(process.pid()), "status");
                    try {
                        String text = Files.readString(status);
                        return text.contains("\nUid:\t54321\t") && text.startsWith("Name:\tpython3");
                    } catch (IOException e) {
                        return false; // it has ended
                    }
                })
                .toList();
    }

    private static byte[] infer(HttpClient client, URI uri, byte[] input) throws IOException, InterruptedException {
        HttpResponse<byte[]> response = client.send(
                HttpRequest.newBuilder(uri)
                        .header("Inference-Header-Content-Length", "0")
                        .POST(HttpRequest.BodyPublishers.ofByteArray(input))
                        .build(),
                HttpResponse.BodyHandlers.ofByteArray());
        byte[] body = response.body();
        assertThat(response.statusCode())
                .as(new String(body, 0, Math.min(body.length, 1000), StandardCharsets.UTF_8))
                .isEqualTo(200);
        return body;
    }

    private static void awaitReady(Process server, Path log, HttpClient client, URI uri)
            throws IOException, InterruptedException {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(SECONDS_TO_START);
        while (true) {
            assertThat(server.isAlive() && System.nanoTime() - end < 0)
                    .as(Files.readString(log))
                    .isTrue();
            try {
                HttpResponse<Void> response =
                        client.send(HttpRequest.newBuilder(uri).build(), HttpResponse.BodyHandlers.discarding());
                if (response.statusCode() == 200) {
                    return;
                }
            } catch (ConnectException e) {
                // Not yet.
            }
            server.waitFor(100, TimeUnit.MILLISECONDS);
        }
    }

    private static void addModel(String name, String config, String program) throws IOException {
        Path model = image.directory().resolve("models").resolve(name);
        Files.createDirectories(model.resolve("1"));
        Files.writeString(model.resolve("config.pbtxt"), config);
        Files.writeString(model.resolve("1/model.py"), program);
    }
}
