package dev.nereid.plugin;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

import dev.nereid.plugin.jar.SpiVersion;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.spi.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Class loading of plugins, and reports of broken ones. Plugins report what they see as the reason of unavailability.
 */
final class PluginTest {
    private static final String FUNCTION = """
            package dev.example;
            import dev.nereid.spi.*;
            import dev.nereid.spi.function.*;
            @BackendFunction(name = "annotated")
            @Input(name = "IN", type = DataType.FP32, dims = -1)
            public class Probe implements TensorFunction {
                public void apply(InferenceRequest request, ModelContext model) {}
            }
            """;

    @TempDir
    private Path plugins;

    @Test
    void findsJarsAndDirectoriesOfJarsByName() throws IOException {
        reporting("b_backend", "\"\"").write(plugins.resolve("zeta.jar"));
        reporting("a_backend", "\"\"").write(plugins.resolve("alpha/any.jar"));
        Files.writeString(plugins.resolve("README.md"), "not a plugin");
        Files.writeString(plugins.resolve(".hidden.jar"), "not a plugin");

        assertThat(open())
                .extracting(BackendStatus::plugin, BackendStatus::backend)
                .containsExactly(tuple("alpha", "a_backend"), tuple("zeta", "b_backend"));
    }

    @Test
    void hidesTheServerAndItsLibrariesFromPlugins() {
        reporting(
                        "probe",
                        "seen(\"dev.nereid.plugin.BackendRegistry\")"
                                + " + seen(\"dev.nereid.api.InferenceServer\")"
                                + " + seen(\"com.google.protobuf.Message\")"
                                + " + seen(\"org.slf4j.Logger\")"
                                + " + seen(\"dev.nereid.spi.Tensor\")"
                                + " + seen(\"java.sql.Connection\")")
                .write(plugins.resolve("probe.jar"));

        assertThat(reasons()).containsExactly("nnnnyy");
    }

    @Test
    void hidesTheServersResourcesFromPlugins() {
        reporting(
                        "probe",
                        "Probe.class.getClassLoader().getResource(\"dev/nereid/plugin/BackendRegistry.class\")"
                                + " + \" \" + Probe.class.getClassLoader().getResource(\"own.txt\").getProtocol()")
                .entry("own.txt", "own")
                .write(plugins.resolve("probe.jar"));

        assertThat(reasons()).containsExactly("null jar");
    }

    @Test
    void givesTheServersSpiToAPluginThatBringsACopy() {
        reporting(
                        "probe",
                        "dev.nereid.spi.Shape.of(1, 2).toString() + dev.nereid.spi.Shape.class.getClassLoader().equals("
                                + "dev.nereid.spi.BackendProvider.class.getClassLoader())")
                .entry("dev/nereid/spi/BackendProvider.class", "not even a class file")
                .entry("dev/nereid/spi/Shape.class", "not even a class file")
                .write(plugins.resolve("probe.jar"));

        assertThat(reasons()).containsExactly("[1,2]true");
    }

    @Test
    void loadsTwoVersionsOfOneLibrarySideBySide() {
        for (String version : List.of("1", "2")) {
            Path directory = plugins.resolve("plugin" + version);
            Path library = PluginJar.of("package lib; public class Greeting { public static String text() {"
                            + " return \"library " + version + "\"; } }")
                    .spiVersion("")
                    .write(directory.resolve("lib.jar"));
            reporting("backend" + version, "lib.Greeting.text()")
                    .compiledAgainst(library)
                    .write(directory.resolve("plugin.jar"));
        }

        assertThat(reasons()).containsExactly("library 1", "library 2");
    }

    @Test
    void invokesPluginsWithTheirOwnContextClassLoader() {
        reporting("probe", "\"\" + (Thread.currentThread().getContextClassLoader() == Probe.class.getClassLoader())")
                .write(plugins.resolve("probe.jar"));
        ClassLoader before = Thread.currentThread().getContextClassLoader();

        assertThat(reasons()).containsExactly("true");
        assertThat(Thread.currentThread().getContextClassLoader()).isSameAs(before);
    }

    @ParameterizedTest
    @CsvSource({"1.0", "1.0.7"})
    void acceptsVersionsOfTheSpiThatItHas(String version) {
        reporting("probe", "\"\"").spiVersion(version).write(plugins.resolve("probe.jar"));

        assertThat(open()).extracting(BackendStatus::state).containsExactly(BackendStatus.State.AVAILABLE);
    }

    @Test
    void reportsAPluginForANewerSpi() {
        reporting("probe", "\"\"").spiVersion("1.1").write(plugins.resolve("probe.jar"));

        assertThat(brokenReason())
                .isEqualTo(
                        "probe.jar: Backend-Spi-Version: 1.1 (expected: 1.0 to 1.0); use a newer server, or build the"
                                + " plugin against nereid-backend-spi 1.0");
    }

    @Test
    void reportsAPluginForAnOlderSpi() {
        reporting("probe", "\"\"").spiVersion("0.9").write(plugins.resolve("probe.jar"));

        assertThat(brokenReason())
                .isEqualTo("probe.jar: Backend-Spi-Version: 0.9 (expected: 1.0 to 1.0); build the plugin again against"
                        + " nereid-backend-spi 1.0");
    }

    @Test
    void reportsAPluginWithoutSpiVersion() {
        reporting("probe", "\"\"").spiVersion("").write(plugins.resolve("probe.jar"));

        assertThat(brokenReason())
                .startsWith("probe.jar: its manifest has no Backend-Spi-Version (expected: ")
                .contains("add the entry to the manifest")
                .contains("<manifestEntries><Backend-Spi-Version>1.0</Backend-Spi-Version></manifestEntries>")
                .endsWith(
                        "jar --update --file probe.jar --manifest FILE with the line 'Backend-Spi-Version: 1.0' in FILE");
    }

    @Test
    void acceptsAPluginWhoseManifestWasUpdatedAsReported() throws IOException {
        Path jar = reporting("probe", "\"\"").spiVersion("").write(plugins.resolve("probe.jar"));
        Path manifest = Files.writeString(plugins.resolve("manifest"), "Backend-Spi-Version: 1.0\n");

        int status = ToolProvider.findFirst("jar")
                .orElseThrow()
                .run(System.out, System.err, "--update", "--file", jar.toString(), "--manifest", manifest.toString());

        assertThat(status).isZero();
        assertThat(open()).extracting(BackendStatus::state).containsExactly(BackendStatus.State.AVAILABLE);
    }

    @Test
    void findsAFunctionThatTheCompilerNamed() {
        PluginJar.of(FUNCTION).processed().write(plugins.resolve("probe.jar"));

        assertThat(open()).containsExactly(new BackendStatus("annotated", "probe", BackendStatus.State.AVAILABLE, ""));
    }

    @Test
    void saysHowTheCompilerNamesAFunction() {
        PluginJar.of(FUNCTION).write(plugins.resolve("probe.jar"));

        assertThat(brokenReason()).contains("for classes with @BackendFunction").contains("javac -proc:full");
    }

    @Test
    void reportsAnAnnotationThatNoModelCanUse() {
        PluginJar.of(FUNCTION.replace("dims = -1", "dims = {-1, 0}"))
                .provider("dev.example.Probe")
                .write(plugins.resolve("probe.jar"));

        assertThat(brokenReason())
                .isEqualTo(
                        "java.lang.IllegalStateException: class dev.example.Probe: annotation @Input 'IN': dims: [-1, 0]"
                                + " (expected: at least one, each 1 or more, or -1 for any size)");
    }

    @Test
    void reportsAnSpiVersionThatIsNone() {
        reporting("probe", "\"\"").spiVersion("one").write(plugins.resolve("probe.jar"));

        assertThat(brokenReason()).isEqualTo("probe.jar: Backend-Spi-Version: one (expected: a version such as 1.0)");
    }

    @Test
    void checksTheSpiVersionBeforeItLoadsAClass() {
        reporting("probe", "\"\"").spiVersion("2.0").without("Probe").write(plugins.resolve("probe.jar"));

        assertThat(brokenReason()).contains("Backend-Spi-Version: 2.0");
    }

    @Test
    void reportsAFileThatIsNoJar() throws IOException {
        Files.writeString(plugins.resolve("probe.jar"), "this is no zip file");

        assertThat(brokenReason()).startsWith("probe.jar: not a readable jar: ");
    }

    @Test
    void reportsADirectoryWithoutJars() throws IOException {
        Files.createDirectories(plugins.resolve("probe"));

        assertThat(brokenReason()).isEqualTo("no file *.jar in its directory (expected: the plugin's jars)");
    }

    @Test
    void reportsAPluginWithoutProvider() {
        PluginJar.of("class Probe { }").write(plugins.resolve("probe.jar"));

        assertThat(brokenReason())
                .startsWith(
                        "no provider: none of its jars has a file META-INF/services/dev.nereid.spi.BackendProvider");
    }

    @Test
    void reportsAServiceFileThatNamesNoClass() {
        PluginJar.of("class Probe { }").provider("# nothing yet").write(plugins.resolve("probe.jar"));

        assertThat(brokenReason()).contains("names no class");
    }

    @Test
    void reportsAProviderThatIsNotThere() {
        PluginJar.of("class Probe { }").provider("Missing").write(plugins.resolve("probe.jar"));

        assertThat(brokenReason()).contains("Missing").contains("not found");
    }

    @Test
    void reportsAClassThatIsNotThere() {
        PluginJar.of(
                        "public class Probe implements dev.nereid.spi.BackendProvider {"
                                + " private final Object part = new Part(); "
                                + rest("probe", "\"\""),
                        "class Part { }")
                .provider("Probe")
                .without("Part")
                .write(plugins.resolve("probe.jar"));

        assertThat(brokenReason()).contains("NoClassDefFoundError: Part");
    }

    @Test
    void reportsAProviderThatThrows() {
        PluginJar.of("public class Probe implements dev.nereid.spi.BackendProvider {"
                        + " public Probe() { throw new IllegalStateException(\"no license\"); } "
                        + rest("probe", "\"\""))
                .provider("Probe")
                .write(plugins.resolve("probe.jar"));

        assertThat(brokenReason()).contains("IllegalStateException: no license");
    }

    @Test
    void reportsANameThatNoModelCanUse() {
        reporting("Not A Name", "\"\"").write(plugins.resolve("probe.jar"));

        assertThat(brokenReason())
                .isEqualTo("Probe: name: 'Not A Name' (expected: lower-case letters, digits, _ and -)");
    }

    @Test
    void reportsANameThatIsNull() {
        PluginJar.of("public class Probe implements dev.nereid.spi.BackendProvider {"
                        + " public String name() { return null; }"
                        + " public dev.nereid.spi.Backend create(dev.nereid.spi.BackendContext c) { return null; } }")
                .provider("Probe")
                .write(plugins.resolve("probe.jar"));

        assertThat(brokenReason()).contains("plugin 'probe': BackendProvider.name returned null");
    }

    @Test
    void reportsTheSecondOfTwoBackendsOfOneName() {
        reporting("same", "\"\"").write(plugins.resolve("first.jar"));
        reporting("same", "\"\"").write(plugins.resolve("second.jar"));

        List<BackendStatus> statuses = open();

        assertThat(statuses).hasSize(2);
        assertThat(statuses.getFirst())
                .isEqualTo(new BackendStatus("same", "first", BackendStatus.State.AVAILABLE, ""));
        assertThat(statuses.getLast().plugin()).isEqualTo("second");
        assertThat(statuses.getLast().reason())
                .isEqualTo("backend name: 'same' is the name of a backend of plugin 'first' already"
                        + " (expected: a name of its own)");
    }

    @Test
    void keepsWorkingPluginsBesideBrokenOnes() throws IOException {
        Files.writeString(plugins.resolve("a.jar"), "this is no zip file");
        reporting("probe", "\"\"").write(plugins.resolve("b.jar"));
        reporting("other", "\"\"").spiVersion("9.0").write(plugins.resolve("c.jar"));

        assertThat(open())
                .extracting(BackendStatus::plugin, BackendStatus::state)
                .containsExactly(
                        tuple("b", BackendStatus.State.AVAILABLE),
                        tuple("a", BackendStatus.State.BROKEN),
                        tuple("c", BackendStatus.State.BROKEN));
    }

    private List<BackendStatus> open() {
        try (BackendRegistry registry = BackendRegistry.open(List.of(plugins), List.of(), environment(plugins))) {
            return registry.statuses();
        }
    }

    private List<String> reasons() {
        List<BackendStatus> statuses = open();
        assertThat(statuses).noneMatch(status -> status.state() == BackendStatus.State.BROKEN);
        return statuses.stream().map(BackendStatus::reason).toList();
    }

    private String brokenReason() {
        List<BackendStatus> statuses = open();
        assertThat(statuses).hasSize(1);
        assertThat(statuses.getFirst().plugin()).isEqualTo("probe");
        assertThat(statuses.getFirst().state()).isEqualTo(BackendStatus.State.BROKEN);
        return statuses.getFirst().reason();
    }

    private static PluginEnvironment environment(Path root) {
        return new PluginEnvironment(new SpiVersion(1, 0), Map.of(), root.resolve("cache"), 2, Map.of());
    }

    /** A plugin whose provider returns the value of an expression as the reason why it is unavailable. */
    private static PluginJar reporting(String name, String expression) {
        return PluginJar.of("public class Probe implements dev.nereid.spi.BackendProvider { "
                        + "static String seen(String c) { try { Class.forName(c); return \"y\"; }"
                        + " catch (ClassNotFoundException e) { return \"n\"; } } "
                        + rest(name, expression))
                .provider("Probe");
    }

    private static String rest(String name, String expression) {
        return "public String name() { return \"" + name + "\"; }"
                + " public java.util.Optional<String> unavailable() {"
                + " String reason = " + expression + ";"
                + " return reason.isEmpty() ? java.util.Optional.empty() : java.util.Optional.of(reason); }"
                + " public dev.nereid.spi.Backend create(dev.nereid.spi.BackendContext c) { return null; } }";
    }
}
