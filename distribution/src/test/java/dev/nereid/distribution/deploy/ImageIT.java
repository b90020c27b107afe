package dev.nereid.distribution.deploy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.google.gson.Gson;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
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
import java.util.List;
import java.util.Map;
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
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.yaml.snakeyaml.LoaderOptions;
import org.yaml.snakeyaml.Yaml;
import org.yaml.snakeyaml.constructor.SafeConstructor;

/**
 * The image and the archive with a Java runtime, made by {@code src/image/assemble}. In place of a container engine, a mount
 * namespace and {@code chroot} run the image: read-only, by a user that it does not know, without a home directory.
 */
@Timeout(300)
@Tag("slow")
final class ImageIT {
    private static final long MAX_BYTES = 150_000_000;
    private static final long SECONDS_TO_STOP = 60;

    /** Java SE, and what the server and its tools use beyond it. */
    private static final String[] MODULES = """
            java.base java.compiler java.datatransfer java.desktop java.instrument java.logging java.management
            java.management.rmi java.naming java.net.http java.prefs java.rmi java.scripting java.se
            java.security.jgss java.security.sasl java.sql java.sql.rowset java.transaction.xa java.xml
            java.xml.crypto jdk.attach jdk.charsets jdk.crypto.ec jdk.internal.jvmstat jdk.jcmd jdk.jdwp.agent
            jdk.jfr jdk.management jdk.management.agent jdk.naming.dns jdk.net jdk.unsupported jdk.zipfs
            """.strip().split("\\s+");

    @TempDir
    private static Path directory;

    private static Path output;

    private static ImageRoot image;
    private static OciLayout layout;
    private static Path root;

    @BeforeAll
    static void assemble() throws Exception {
        assumeTrue(Files.isExecutable(Path.of("/usr/bin/dpkg-query")), "packages of Debian: not on this system");
        Tool.requireMounts();
        output = directory.resolve("output");
        ImageRoot.assemble(output);
        try (Stream<Path> files = Files.list(output)) {
            assertThat(files).as("nothing else stays").hasSize(2);
        }
        image = ImageRoot.unpack(file(".oci.tar"), directory);
        layout = image.layout();
        root = image.directory();
        image.addModels(InstalledServer.MODELS);
    }

    @Test
    void theImageServesReadOnlyAsAForeignUserWithoutHome() throws Exception {
        assertThat(Files.size(file(".oci.tar"))).as("bytes of the image").isLessThan(MAX_BYTES);
        JsonObject config = layout.config().getAsJsonObject("config");
        List<String> entry = OciLayout.strings(config.getAsJsonArray("Entrypoint"));
        assertThat(entry.getFirst()).isEqualTo("/opt/java/bin/java");
        assertThat(entry).containsAll(optionsOfTheLauncher());
        assertThat(config.get("User").getAsString()).matches("[1-9]\\d*:[1-9]\\d*");
        assertThat(root.resolve("etc/ssl/certs/ca-certificates.crt")).isNotEmptyFile();
        assertThat(root.resolve("bin/sh")).doesNotExist();

        int port = PageScript.freePort();
        Process server = image.serve("exec", log(), "--http-port=" + port);
        try {
            assertThat(infer(server, port)).contains("[6,8,10,12]");
            server.destroy();
            assertThat(server.waitFor(SECONDS_TO_STOP, TimeUnit.SECONDS)).isTrue();
            assertThat(server.exitValue()).isZero();
        } finally {
            server.destroyForcibly();
        }
    }

    /** Engines mount {@code --tmpfs /tmp} so that nothing in it is executed, and libraries cannot be loaded. */
    @Test
    void aDirectoryThatExecutesNothingIsNamedWithWhatToDo() throws Exception {
        Process server = image.serve("noexec", log(), "--http-port=0");
        try {
            assertThat(server.waitFor(SECONDS_TO_STOP, TimeUnit.SECONDS)).isTrue();
            String log = Files.readString(log());
            assertThat(server.exitValue()).as(log).isEqualTo(1);
            assertThat(log).contains("mounted noexec", "--tmpfs /tmp:exec", "\"directory\":\"/tmp/nereid-");
        } finally {
            server.destroyForcibly();
        }
        for (String page : List.of("docs/image.md", "deploy/Containerfile")) {
            assertThat(Files.readString(InstalledServer.CHECKOUT.resolve(page)))
                    .contains("--tmpfs /tmp:exec")
                    .doesNotContain("--tmpfs /tmp ");
        }
    }

    /** Docker before release 25 reads {@code manifest.json} in place of the index. */
    @Test
    void olderReleasesOfDockerFindTheSameImage() throws Exception {
        JsonObject manifest = layout.manifest();
        JsonArray images = JsonParser.parseString(
                        Files.readString(layout.directory().resolve("manifest.json")))
                .getAsJsonArray();
        assertThat(images).hasSize(1);
        JsonObject image = images.get(0).getAsJsonObject();

        assertThat(image.get("Config").getAsString()).isEqualTo(OciLayout.path(manifest.getAsJsonObject("config")));
        assertThat(OciLayout.strings(image.getAsJsonArray("Layers")))
                .hasSize(3)
                .isEqualTo(
                        StreamSupport.stream(manifest.getAsJsonArray("layers").spliterator(), false)
                                .map(layer -> OciLayout.path(layer.getAsJsonObject()))
                                .toList());
        assertThat(OciLayout.strings(image.getAsJsonArray("RepoTags"))).containsExactly("localhost/nereid:test");
        assertThat(layout.image()
                        .getAsJsonObject("annotations")
                        .get("io.containerd.image.name")
                        .getAsString())
                .isEqualTo("localhost/nereid:test");
        assertThat(layout.config().getAsJsonObject("rootfs").getAsJsonArray("diff_ids"))
                .hasSize(3);
    }

    @Test
    void theRuntimeHasTheModulesThatPluginsAndToolsNeed() throws Exception {
        String release = Files.readString(root.resolve("opt/java/release"));
        assertThat(release.replaceAll("(?s).*MODULES=\"([^\"]*)\".*", "$1").split(" "))
                .containsExactlyInAnyOrder(MODULES);
        // Debuggers of plugins need an agent, which the JVM loads at its start.
        List<String> command = image.command("exec");
        command.addAll(List.of(
                "/opt/java/bin/java",
                "-agentlib:jdwp=transport=dt_socket,server=y,suspend=n,address=127.0.0.1:0",
                "--version"));
        assertThat(Tool.succeed(root, command.toArray(String[]::new))).contains("Listening for transport dt_socket");
    }

    @Test
    void theImageListsItsPartsAndTheirLicenses() throws Exception {
        List<String> packages = List.of("libc6", "libstdc++6", "libgcc-s1", "zlib1g", "ca-certificates");
        JsonArray parts = OciLayout.parse(root.resolve("usr/share/doc/nereid-image/sbom.cdx.json"))
                .getAsJsonArray("components");
        assertThat(parts)
                .extracting(part -> part.getAsJsonObject().get("name").getAsString())
                .containsExactlyElementsOf(
                        Stream.concat(packages.stream(), Stream.of("openjdk")).toList());
        assertThat(parts)
                .allSatisfy(part -> assertThat(
                                part.getAsJsonObject().get("purl").getAsString())
                        .matches("pkg:(deb/(debian|ubuntu)|generic)/[A-Za-z0-9%.-]+@[A-Za-z0-9%.-]+(\\?arch=\\w+)?"));
        for (String name : packages) {
            assertThat(root.resolve("usr/share/doc/" + name + "/copyright")).isNotEmptyFile();
            assertThat(root.resolve("var/lib/dpkg/status.d/" + name)).content().contains("Package: " + name + "\n");
        }
        assertThat(root.resolve("usr/share/common-licenses/LGPL-2.1")).isNotEmptyFile();
        assertThat(root.resolve("etc/os-release")).content().contains("VERSION_ID=");
        assertThat(root.resolve("opt/java/legal/java.base/LICENSE")).isNotEmptyFile();
        for (String directory : List.of("", "plugins/onnx", "plugins/tensorrt", "caches/redis", "storage/s3")) {
            Path installed = root.resolve("opt/nereid").resolve(directory);
            assertThat(installed.resolve("sbom.cdx.json")).isNotEmptyFile();
            assertThat(installed.resolve("THIRD-PARTY.txt")).isNotEmptyFile();
        }
    }

    /** The runtime of KServe is for this image. */
    @Test
    void kserveSelectsTheImageOnlyForBackendsThatItHas() throws Exception {
        Map<String, Object> runtime = new Yaml(new SafeConstructor(new LoaderOptions()))
                .load(Files.readString(InstalledServer.HOME.resolve("deploy/kserve/nereid-runtime.yaml")));
        List<String> selected = StreamSupport.stream(
                        new Gson()
                                .toJsonTree(runtime.get("spec"))
                                .getAsJsonObject()
                                .getAsJsonArray("supportedModelFormats")
                                .spliterator(),
                        false)
                .map(JsonElement::getAsJsonObject)
                .filter(format -> format.has("autoSelect"))
                .map(format -> format.get("name").getAsString())
                .toList();

        assertThat(selected)
                .isNotEmpty()
                .allMatch(name -> Files.isDirectory(root.resolve("opt/nereid/plugins/" + name)));
        assertThat(root.resolve("opt/nereid/plugins/tensorflow")).doesNotExist();
        assertThat(root.resolve("opt/nereid/plugins/pytorch")).doesNotExist();
    }

    /** A pipe has the status of its last program, unless the script says otherwise. */
    @ParameterizedTest
    @ValueSource(strings = {"sha256sum", "dpkg-query"})
    void aStepThatFailsEndsTheAssembly(String program) throws Exception {
        Path failing = Files.createDirectories(directory.resolve("failing-" + program));
        Path stub = Files.writeString(failing.resolve(program), "#!/bin/sh\necho broken >&2\nexit 3\n");
        assertThat(stub.toFile().setExecutable(true)).isTrue();
        Path target = directory.resolve("target-" + program);

        Tool.Result result = Tool.run(
                directory,
                "env",
                "JAVA_HOME=" + System.getProperty("java.home"),
                "PATH=" + failing + ":" + System.getenv("PATH"),
                ImageRoot.ASSEMBLE.toString(),
                InstalledServer.HOME.toString(),
                target.toString(),
                "test");

        assertThat(result.status()).as(result.out()).isNotZero();
        assertThat(target).isEmptyDirectory();
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
        assertThat(server.resolve("plugins/tensorflow")).isDirectory();
        assertThat(server.resolve("plugins/pytorch")).doesNotExist();
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
        Tool.Result result =
                Tool.run(directory, ImageRoot.ASSEMBLE.toString(), directory.toString(), output.toString(), "test");

        assertThat(result.status()).isEqualTo(1);
        assertThat(result.out()).contains("no lib/nereid.jar (expected: an installed server)");
    }

    @Test
    void anUnknownOptionAndAMissingPluginAreNamed() throws Exception {
        String assemble = ImageRoot.ASSEMBLE.toString();
        Path small = Files.createDirectories(directory.resolve("small/lib"));
        Files.writeString(small.resolve("nereid.jar"), "");
        String server = small.getParent().toString();

        assertThat(Tool.run(directory, assemble, server, output.toString(), "test", "--torch")
                        .out())
                .contains("--torch: unknown (expected: --tensorflow, --pytorch or --python)");
        assertThat(Tool.run(directory, assemble, server, output.toString(), "test", "--pytorch")
                        .out())
                .contains("no plugins/pytorch (expected: with --pytorch, an installed server that has it)");
    }

    private static Path file(String suffix) {
        return output.resolve(name() + suffix);
    }

    private static String name() {
        return "nereid-test-linux-" + ImageRoot.machine();
    }

    private static Path log() {
        return directory.resolve("log.txt");
    }

    private static Path unpack(Path file, String name) throws IOException, InterruptedException {
        Path unpacked = Files.createDirectory(directory.resolve(name));
        Tool.succeed(unpacked, "tar", "-xf", file.toString());
        return unpacked;
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
                assertThat(server.isAlive()).as(Files.readString(log())).isTrue();
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
