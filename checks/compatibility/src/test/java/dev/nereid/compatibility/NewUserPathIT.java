package dev.nereid.compatibility;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.distribution.testing.FreshCheckout;
import dev.nereid.distribution.testing.MarkdownPage;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.ServerSocket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.jar.Attributes;
import java.util.jar.JarFile;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests the commands of the guides from an empty directory, for users who have nothing but a checkout. */
@Tag("slow")
@Timeout(value = 10, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
final class NewUserPathIT {
    private static final String VERSION = "0.1.0-SNAPSHOT";
    private static final List<String> JARS = List.of(
            "api",
            "backend-spi",
            "backend-testkit",
            "scheduler",
            "model-repository",
            "plugin-host",
            "server",
            "server-testkit");

    /** The imports of the BOM, in the versions that the modules need at least. */
    private static final List<String> FOREIGN = List.of("protobuf-bom", "grpc-bom");

    private static final String FIRST = "[2.0,5.0,-6.0]";
    private static final String SECOND = "[3.0,7.5,-9.0]";
    private static final int MAX_CONTRACT_LINES = 60;
    private static final String LAST_COMMAND = "kill $!\n";
    private static final String KILL_AT_END = "trap 'kill $! 2>/dev/null' EXIT\n";
    private static final String PAUSE = "server: ";

    @TempDir
    private static Path directory;

    private static NewUser user;
    private static MarkdownPage guide;
    private static MarkdownPage embedding;

    @TempDir
    private Path empty;

    @BeforeAll
    static void installArtifacts() throws Exception {
        Program.assumeRuns("curl", "--version");
        guide = MarkdownPage.of("docs/backend-authors.md").section("Ten minutes: a plugin by Maven");
        embedding = MarkdownPage.of("docs/embedding.md");
        user = NewUser.in(directory.resolve("home"));
        Path checkout = directory.resolve("checkout");
        FreshCheckout.copyTo(checkout);

        String install = guide.commands().getFirst();
        assertThat(embedding.commands().getFirst()).isEqualTo(install);
        user.run(checkout, install).success();
    }

    @Test
    void aPluginIsGeneratedServedAndReplacedWhileRequestsGoOn() throws Exception {
        int port = freePort();
        Process shell = user.start(empty, environment(port), pausedBeforeItsEnd(afterTheInstallation(guide), port));
        StringBuilder out = new StringBuilder();
        try (BufferedReader lines = shell.inputReader(StandardCharsets.UTF_8)) {
            await(lines, out, FIRST);
            Instant firstResponse = Instant.now();
            try (Traffic traffic = new Traffic(
                    URI.create("http://localhost:" + port + "/v2/models/twice/infer"),
                    Files.readString(empty.resolve("twice/request.json")),
                    SECOND)) {
                long server = Long.parseLong(await(lines, out, PAUSE).replace(PAUSE, ""));

                assertThat(traffic.await()).as(out.toString()).isTrue();
                traffic.stop().forEach(NewUserPathIT::assertReplacedOnce);
                assertThat(ProcessHandle.of(server).orElseThrow().info().startInstant())
                        .hasValueSatisfying(start -> assertThat(start).isBefore(firstResponse));
            }
            shell.getOutputStream().write('\n');
            shell.getOutputStream().flush();
            lines.lines().forEach(line -> out.append(line).append('\n'));
            assertThat(shell.waitFor()).as(out.toString()).isZero();
        } finally {
            shell.descendants().forEach(ProcessHandle::destroy);
            shell.destroy();
        }
        assertTheGuideShows(empty.resolve("twice/src/main/java/com/example/Twice.java"));
    }

    /** Checks the responses to one client: none failed, the first ones are of the old plugin, and all others of the new. */
    private static void assertReplacedOnce(List<String> responses) {
        List<String> kinds = responses.stream()
                .map(response -> response.startsWith("200 ") && response.contains(FIRST)
                        ? FIRST
                        : response.startsWith("200 ") && response.contains(SECOND) ? SECOND : response)
                .toList();
        assertThat(kinds).startsWith(FIRST).endsWith(SECOND);
        assertThat(kinds.subList(0, kinds.indexOf(SECOND))).containsOnly(FIRST);
        assertThat(kinds.subList(kinds.indexOf(SECOND), kinds.size())).containsOnly(SECOND);
    }

    /** Checks that the class on the page is the generated one, after the change that the commands make. */
    private static void assertTheGuideShows(Path generated) throws IOException {
        assertThat(Files.readString(generated))
                .contains(guide.blocks("java").getFirst().replace("2 * ", "3 * "));
    }

    @Test
    void aProgramEmbedsTheServer() throws Exception {
        embedding.saveFiles(empty);

        String out = user.run(empty, afterTheInstallation(embedding)).success();

        String program = out.substring(out.lastIndexOf("BUILD SUCCESS"));
        assertThat(program).contains("[11, 22, 33, 44]", "[9, 18, 27, 36]").doesNotContain("WARNING: ");
    }

    @Test
    void theProjectOfAnyNameBuilds() throws Exception {
        String lines = " -Dnereid.native=true '-Dnereid.shared=steps step-*.jar'";
        user.run(empty, generate("org.my-company", "my-own_step") + "mvn -B -f my-own_step package" + lines)
                .success();

        Path project = empty.resolve("my-own_step");
        try (JarFile jar = new JarFile(project.resolve("target/my-own_step.jar").toFile())) {
            Attributes manifest = jar.getManifest().getMainAttributes();
            assertThat(manifest.getValue("Backend-Spi-Version")).isEqualTo("1.0");
            assertThat(manifest.getValue("Nereid-Native")).isEqualTo("true");
            assertThat(manifest.getValue("Nereid-Shared")).isEqualTo("steps step-*.jar");
            try (var service = jar.getInputStream(jar.getEntry("META-INF/services/dev.nereid.spi.BackendProvider"))) {
                assertThat(new String(service.readAllBytes(), StandardCharsets.UTF_8))
                        .contains("org.my_company.MyOwnStep");
            }
        }
        assertThat(project.resolve("models/my-own_step/config.pbtxt")).hasContent("backend: \"my-own_step\"");
        assertThat(Files.readAllLines(project.resolve("src/test/java/org/my_company/MyOwnStepContractTest.java")))
                .hasSizeLessThanOrEqualTo(MAX_CONTRACT_LINES);
    }

    /** The README of a generated project, up to a jar that takes the place of another. */
    @ParameterizedTest
    @ValueSource(strings = {"function", "framework"})
    void theCommandsOfTheGeneratedReadmeWork(String form) throws Exception {
        user.run(empty, generate("com.example", "twice -Dform=" + form)).success();
        Path project = empty.resolve("twice");
        List<String> commands = new MarkdownPage(Files.readString(project.resolve("README.md"))).commands();
        assertThat(commands).hasSize(3);

        int port = freePort();
        String out = user.run(
                        project,
                        environment(port),
                        KILL_AT_END + String.join("", commands).replace("localhost:8000", "localhost:" + port))
                .success();

        assertThat(out).contains(FIRST);
        assertThat(project.resolve("plugins").toFile().list())
                .contains("twice.jar")
                .doesNotContain("twice.jar.new");
        assertThat(project.resolve("src/main/java/com/example").toFile().list())
                .containsExactlyInAnyOrder(
                        form.equals("function")
                                ? new String[] {"Twice.java"}
                                : new String[] {
                                    "TwiceBackend.java", "TwiceInstance.java", "TwiceModel.java", "TwiceProvider.java"
                                });
    }

    @Test
    void aFunctionInKotlinIsBuiltByMavenAndServed() throws Exception {
        MarkdownPage page = MarkdownPage.of("docs/backend-authors.md").section("Gradle and Kotlin");
        page.saveFiles(empty);
        int port = freePort();

        String commands = page.commands().getFirst().replace("localhost:8000", "localhost:" + port);
        String withoutDaemon = commands.replace("mvn -B", "mvn -B -Dkotlin.compiler.daemon=false");
        String out =
                user.run(empty, environment(port), KILL_AT_END + withoutDaemon).success();

        assertThat(out).contains(SECOND);
    }

    @Test
    void aFunctionInKotlinIsBuiltByGradle() throws Exception {
        MarkdownPage page = MarkdownPage.of("docs/backend-authors.md").section("Gradle and Kotlin");
        page.saveFiles(empty);
        assertThat(empty.resolve("thrice/build.gradle.kts"))
                .content()
                .contains("nereid-backend-spi:" + VERSION, "\"Backend-Spi-Version\" to \"1.0\"");
        Program.assumeRuns("gradle", "--version");

        user.run(empty, "gradle --no-daemon -p thrice plugin").success();

        Path plugin = empty.resolve("thrice/build/plugins/thrice");
        try (JarFile jar = new JarFile(plugin.resolve("thrice.jar").toFile())) {
            assertThat(jar.getManifest().getMainAttributes().getValue("Backend-Spi-Version"))
                    .isEqualTo("1.0");
        }
        assertThat(plugin).isDirectoryContaining("glob:**kotlin-stdlib-*.jar");
    }

    @Test
    void aPluginWithLibrariesIsADirectory() throws Exception {
        user.run(empty, generate("com.example", "twice")).success();
        Path pom = empty.resolve("twice/pom.xml");
        Files.writeString(pom, Files.readString(pom).replace("</project>", """
                  <dependencies>
                    <dependency>
                      <groupId>org.jspecify</groupId>
                      <artifactId>jspecify</artifactId>
                      <version>1.0.1</version>
                    </dependency>
                  </dependencies>
                </project>
                """));

        user.run(empty, inText("mvn -f twice dependency:copy-dependencies").replace("DIR", empty + "/plugins/twice"))
                .success();

        assertThat(empty.resolve("plugins/twice").toFile().list()).containsExactly("jspecify-1.0.1.jar");
    }

    @Test
    void theArtifactsAreDeployedToAnotherRepository() throws Exception {
        String deployment = inText("deploy -DaltDeploymentRepository").replace("/srv/maven", empty.toString());

        user.run(
                        directory.resolve("checkout"),
                        guide.commands().getFirst().replace("install", "-pl authors/bom " + deployment))
                .success();

        assertThat(empty.resolve("dev/nereid/nereid-bom/" + VERSION)).isDirectoryContaining("glob:**.pom");
    }

    /** Returns the command in a sentence of the guide that starts with some words. */
    private static String inText(String start) {
        Matcher command =
                Pattern.compile("`(" + start.replace(" ", "\\s") + "[^`]*)`").matcher(guide.text());
        assertThat(command.find()).as(start).isTrue();
        return command.group(1).replace('\n', ' ');
    }

    @Test
    void namesThatCannotWorkAreRefused() throws Exception {
        assertThat(refusal("com.example", "2Steps"))
                .contains("artifactId: '2Steps' (expected: lower-case letters and digits, parts joined by - or _)");
        assertThat(refusal("com.example", "engine -Dform=other"))
                .contains("form: 'other' (expected: function or framework)");
        assertThat(refusal("com.new", "steps"))
                .contains("package: 'com.new' (expected: a name of a Java package, by -Dpackage)");
    }

    @Test
    void aMissingJdkIsNamed() throws Exception {
        NewUser.Result result = user.run(
                empty, generate("com.example", "later") + "mvn -B -f later -Dmaven.compiler.release=99 package");

        assertThat(result.status()).isNotZero();
        assertThat(result.out()).containsPattern("Cannot find matching toolchain .*version=\\[99,\\)");
    }

    @Test
    void theArtifactsAreCompleteAndNoneComesFromElsewhere() throws Exception {
        Path group = user.repository().resolve("dev/nereid");
        for (String module : JARS) {
            Path version = group.resolve("nereid-" + module).resolve(VERSION);
            for (String kind : List.of(".pom", ".jar", "-sources.jar", "-javadoc.jar")) {
                assertThat(version.resolve("nereid-" + module + "-" + VERSION + kind))
                        .isNotEmptyFile();
            }
        }
        assertThat(managed(group.resolve("nereid-bom")))
                .containsExactlyInAnyOrderElementsOf(
                        Stream.concat(JARS.stream().map(module -> "nereid-" + module), FOREIGN.stream())
                                .toList());
        assertThat(Files.readString(pom(group.resolve("nereid-backend-parent"))))
                .contains("<nereid.version>" + VERSION + "</nereid.version>");
        try (Stream<Path> origins = Files.find(group, 3, (file, attributes) -> file.endsWith("_remote.repositories"))) {
            // A file that was installed and not fetched has no repository between ">" and "=".
            assertThat(origins.flatMap(NewUserPathIT::lines).filter(line -> !line.startsWith("#")))
                    .isNotEmpty()
                    .allMatch(line -> line.endsWith(">="));
        }
    }

    private String refusal(String groupId, String artifactId) throws IOException, InterruptedException {
        NewUser.Result result = user.run(empty, generate(groupId, artifactId));
        assertThat(result.status()).as(result.out()).isNotZero();
        return result.out();
    }

    /** Returns the command of the guide that generates a project, for other names. */
    private static String generate(String groupId, String artifactId) {
        String block = guide.commands().stream()
                .filter(commands -> commands.contains(":generate"))
                .findFirst()
                .orElseThrow();
        return block.substring(0, block.indexOf("\nmvn -f") + 1)
                .replace("-DgroupId=com.example", "-DgroupId=" + groupId)
                .replace("-DartifactId=twice", "-DartifactId=" + artifactId);
    }

    private static String afterTheInstallation(MarkdownPage page) {
        return String.join("", page.commands().subList(1, page.commands().size()));
    }

    private static String pausedBeforeItsEnd(String commands, int port) {
        assertThat(commands).endsWith("\n" + LAST_COMMAND);
        return KILL_AT_END
                + commands.replace("localhost:8000", "localhost:" + port)
                        .replace(LAST_COMMAND, "echo \"" + PAUSE + "$!\"\nread answer\n" + LAST_COMMAND);
    }

    private static Map<String, String> environment(int port) {
        return Map.of("NEREID_HTTP_PORT", String.valueOf(port), "NEREID_GRPC_PORT", "0", "NEREID_METRICS_PORT", "0");
    }

    /** Reads lines up to one with a text, and returns that. */
    private static String await(BufferedReader lines, StringBuilder out, String text) throws IOException {
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            out.append(line).append('\n');
            if (line.contains(text)) {
                return line;
            }
        }
        throw new AssertionError("ended before '" + text + "': " + out);
    }

    private static List<String> managed(Path artifact) throws IOException {
        return Pattern.compile("<dependency>.*?<artifactId>(.*?)</artifactId>", Pattern.DOTALL)
                .matcher(Files.readString(pom(artifact)))
                .results()
                .map(match -> match.group(1))
                .toList();
    }

    private static Path pom(Path artifact) {
        return artifact.resolve(VERSION).resolve(artifact.getFileName() + "-" + VERSION + ".pom");
    }

    private static Stream<String> lines(Path file) {
        try {
            return Files.readAllLines(file).stream();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0)) {
            return socket.getLocalPort();
        }
    }
}
