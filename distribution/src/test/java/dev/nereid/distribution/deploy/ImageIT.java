package dev.nereid.distribution.deploy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import dev.nereid.distribution.testing.InstalledServer;
import dev.nereid.distribution.testing.PageScript;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.ConnectException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.DigestInputStream;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import java.util.zip.ZipFile;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * The image and the archive with a Java runtime, made by {@code src/image/assemble}. In place of a container engine, a mount
 * namespace and {@code chroot} run the image: read-only, by a user that it does not know, without a home directory.
 */
@Timeout(300)
@Tag("slow")
final class ImageIT {
    private static final Path ASSEMBLE = InstalledServer.CHECKOUT.resolve("distribution/src/image/assemble");
    private static final long MAX_BYTES = 150_000_000;
    private static final String FOREIGN_USER = "54321:54321";
    private static final long SECONDS_TO_STOP = 60;

    @TempDir
    private static Path directory;

    private static Path output;

    @BeforeAll
    static void assemble() throws Exception {
        assumeTrue(Files.isExecutable(Path.of("/usr/bin/dpkg-query")), "packages of Debian: not on this system");
        assumeTrue(
                Tool.run(Path.of("/"), "unshare", "--mount", "true").status() == 0,
                "mount namespaces: not permitted to this user");
        output = directory.resolve("output");
        Tool.Result assembled = Tool.run(
                directory,
                "env",
                "JAVA_HOME=" + System.getProperty("java.home"),
                ASSEMBLE.toString(),
                InstalledServer.HOME.toString(),
                output.toString(),
                "test");
        assertThat(assembled.status()).as(assembled.out()).isZero();
        try (Stream<Path> files = Files.list(output)) {
            assertThat(files).as("nothing else stays").hasSize(2);
        }
    }

    @Test
    void theImageServesReadOnlyAsAForeignUserWithoutHome() throws Exception {
        assertThat(Files.size(file(".oci.tar"))).as("bytes of the image").isLessThan(MAX_BYTES);
        Path layout = unpack(file(".oci.tar"), "layout");
        JsonObject index = JsonParser.parseString(Files.readString(layout.resolve("index.json")))
                .getAsJsonObject();
        JsonObject manifest =
                json(layout, index.getAsJsonArray("manifests").get(0).getAsJsonObject());
        assertThat(index.getAsJsonArray("manifests")
                        .get(0)
                        .getAsJsonObject()
                        .getAsJsonObject("annotations")
                        .get("io.containerd.image.name")
                        .getAsString())
                .isEqualTo("localhost/nereid:test");
        JsonObject image = json(layout, manifest.getAsJsonObject("config"));
        JsonObject config = image.getAsJsonObject("config");
        Path root = Files.createDirectory(directory.resolve("root"));
        JsonArray layers = manifest.getAsJsonArray("layers");
        assertThat(image.getAsJsonObject("rootfs").getAsJsonArray("diff_ids")).hasSameSizeAs(layers);
        for (JsonElement layer : layers) {
            run(root, "tar", "-xzf", blob(layout, layer.getAsJsonObject()).toString());
        }

        JsonObject docker = JsonParser.parseString(Files.readString(layout.resolve("manifest.json")))
                .getAsJsonArray()
                .get(0)
                .getAsJsonObject();
        assertThat(strings(docker.getAsJsonArray("RepoTags"))).containsExactly("localhost/nereid:test");
        assertThat(docker.get("Config").getAsString()).isEqualTo(path(manifest.getAsJsonObject("config")));
        assertThat(strings(docker.getAsJsonArray("Layers")))
                .isEqualTo(StreamSupport.stream(layers.spliterator(), false)
                        .map(layer -> path(layer.getAsJsonObject()))
                        .toList());
        assertThat(Tool.run(root, "cat", "opt/java/release").out()).contains("jdk.jdwp.agent", "jdk.jfr", "jdk.jcmd");

        List<String> entry = strings(config.getAsJsonArray("Entrypoint"));
        assertThat(entry.getFirst()).isEqualTo("/opt/java/bin/java");
        assertThat(entry).containsAll(optionsOfTheLauncher());
        assertThat(config.get("User").getAsString()).matches("[1-9]\\d*:[1-9]\\d*");
        assertThat(root.resolve("usr/share/doc/libc6/copyright")).isRegularFile();
        assertThat(root.resolve("etc/ssl/certs/ca-certificates.crt")).isNotEmptyFile();
        assertThat(root.resolve("bin/sh")).doesNotExist();

        run(
                directory,
                "cp",
                "-r",
                InstalledServer.MODELS + "/.",
                root.resolve("models").toString());
        int port = PageScript.freePort();
        List<String> command = new ArrayList<>(entry);
        strings(config.getAsJsonArray("Cmd")).stream()
                .filter(argument -> !argument.contains("-address="))
                .forEach(command::add);
        command.addAll(List.of("--http-port=" + port, "--grpc-port=0", "--metrics-port=0"));
        Process server = start(root, strings(config.getAsJsonArray("Env")), command);
        try {
            assertThat(infer(server, port)).contains("[6,8,10,12]");
            server.destroy();
            assertThat(server.waitFor(SECONDS_TO_STOP, TimeUnit.SECONDS)).isTrue();
            assertThat(server.exitValue()).isZero();
        } finally {
            server.destroyForcibly();
        }
    }

    @Test
    void theArchiveNeedsNoJdk() throws Exception {
        Path server = unpack(file(".tar.gz"), "archive").resolve(name());
        // No other Java: an empty directory hides those of the machine.
        Tool.Result demo = Tool.run(
                server,
                "unshare",
                "--mount",
                "sh",
                "-c",
                "mount -t tmpfs tmpfs /usr/lib/jvm; mount -t tmpfs tmpfs /opt;"
                        + " exec env -i PATH=/usr/bin:/bin bin/nereid demo --exit"
                        + " --http-port=0 --grpc-port=0 --metrics-port=0");

        assertThat(demo.status()).as(demo.out()).isZero();
        assertThat(demo.out()).contains("over HTTP: seven", "over gRPC: seven");
        try (Stream<Path> files = Files.walk(server)) {
            for (Path jar :
                    files.filter(path -> path.toString().endsWith(".jar")).toList()) {
                assertThat(jar.getFileName().toString()).doesNotContain("aarch", "windows", "osx");
                try (ZipFile zip = new ZipFile(jar.toFile())) {
                    assertThat(zip.stream())
                            .as("%s", jar)
                            .noneMatch(entry -> entry.getName().matches(".*(osx|win|darwin).*\\.(dll|dylib|jnilib)"));
                }
            }
        }
    }

    @Test
    void aWrongServerIsNamed() throws Exception {
        Tool.Result result = Tool.run(directory, ASSEMBLE.toString(), directory.toString(), output.toString(), "test");

        assertThat(result.status()).isEqualTo(1);
        assertThat(result.out()).contains("no lib/nereid.jar (expected: an installed server)");
    }

    @Test
    void aToolThatFailsIsNoImage() throws Exception {
        Path tools = Files.createDirectory(directory.resolve("tools"));
        Path dpkg = tools.resolve("dpkg-query");
        Files.writeString(dpkg, "#!/bin/sh\nexit 1\n");
        assertThat(dpkg.toFile().setExecutable(true)).isTrue();
        Path empty = Files.createDirectory(directory.resolve("no-image"));

        Tool.Result result = Tool.run(
                directory,
                "env",
                "PATH=" + tools + ":/usr/bin:/bin",
                "JAVA_HOME=" + System.getProperty("java.home"),
                ASSEMBLE.toString(),
                InstalledServer.HOME.toString(),
                empty.toString(),
                "test");

        assertThat(result.status()).as(result.out()).isNotZero();
        assertThat(empty).isEmptyDirectory();
    }

    private static Path file(String suffix) {
        return output.resolve(name() + suffix);
    }

    private static String name() {
        String machine = System.getProperty("os.arch").equals("aarch64") ? "aarch64" : "x86_64";
        return "nereid-test-linux-" + machine;
    }

    private static Path unpack(Path file, String name) throws IOException, InterruptedException {
        Path unpacked = Files.createDirectory(directory.resolve(name));
        run(unpacked, "tar", "-xf", file.toString());
        return unpacked;
    }

    private static JsonObject json(Path layout, JsonObject descriptor) throws Exception {
        return JsonParser.parseString(Files.readString(blob(layout, descriptor)))
                .getAsJsonObject();
    }

    /** Finds what a descriptor describes, of the size and with the digest that it says. */
    private static Path blob(Path layout, JsonObject descriptor) throws Exception {
        String digest = descriptor.get("digest").getAsString();
        Path blob = layout.resolve("blobs").resolve(digest.replace(':', '/'));
        assertThat(Files.size(blob)).isEqualTo(descriptor.get("size").getAsLong());
        MessageDigest sha256 = MessageDigest.getInstance("SHA-256");
        try (InputStream in = new DigestInputStream(Files.newInputStream(blob), sha256)) {
            in.transferTo(OutputStream.nullOutputStream());
        }
        assertThat("sha256:" + HexFormat.of().formatHex(sha256.digest())).isEqualTo(digest);
        return blob;
    }

    private static String path(JsonObject descriptor) {
        return "blobs/" + descriptor.get("digest").getAsString().replace(':', '/');
    }

    private static List<String> strings(JsonArray array) {
        return StreamSupport.stream(array.spliterator(), false)
                .map(JsonElement::getAsString)
                .toList();
    }

    private static List<String> optionsOfTheLauncher() throws IOException {
        String launcher = Files.readString(InstalledServer.HOME.resolve("bin/nereid"));
        List<String> options = Pattern.compile("(?m)^    (--?[^ $]+) \\\\$")
                .matcher(launcher)
                .results()
                .map(option -> option.group(1))
                .toList();
        assertThat(options).hasSizeGreaterThan(3);
        return options;
    }

    private static void run(Path where, String... command) throws IOException, InterruptedException {
        Tool.Result result = Tool.run(where, command);
        assertThat(result.status()).as(result.out()).isZero();
    }

    /** Starts a command of an image as container engines do with {@code --read-only} and {@code --tmpfs /tmp}. */
    private static Process start(Path root, List<String> environment, List<String> command) throws IOException {
        List<String> line = new ArrayList<>(List.of(
                "unshare",
                "--mount",
                "sh",
                "-c",
                "set -e; mount --bind . .; cd \"$PWD\"; mount -o remount,ro,bind .;"
                        + " mount -t tmpfs -o mode=1777 tmpfs tmp; mount -t proc proc proc; mount --bind /dev dev;"
                        + " ! touch opt/file 2>/dev/null; exec env -i \"$@\"",
                "sh"));
        line.addAll(environment);
        line.addAll(List.of("/usr/sbin/chroot", "--userspec=" + FOREIGN_USER, "."));
        line.addAll(command);
        return new ProcessBuilder(line)
                .directory(root.toFile())
                .redirectErrorStream(true)
                .redirectOutput(directory.resolve("log.txt").toFile())
                .start();
    }

    /** Sends a request as soon as the server listens. */
    private static String infer(Process server, int port) throws IOException, InterruptedException {
        HttpRequest request = HttpRequest.newBuilder(
                        URI.create("http://localhost:" + port + "/v2/models/add_sub/infer"))
                .POST(HttpRequest.BodyPublishers.ofString("""
                        {"inputs": [{"name": "INPUT0", "datatype": "INT32", "shape": [1, 4], "data": [1, 2, 3, 4]},
                          {"name": "INPUT1", "datatype": "INT32", "shape": [1, 4], "data": [5, 6, 7, 8]}]}"""))
                .build();
        try (HttpClient client = HttpClient.newHttpClient()) {
            while (true) {
                assertThat(server.isAlive())
                        .as(Files.readString(directory.resolve("log.txt")))
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
}
