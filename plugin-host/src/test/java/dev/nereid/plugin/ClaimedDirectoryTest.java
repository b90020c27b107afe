package dev.nereid.plugin;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.tuple;

import dev.nereid.plugin.jar.SpiVersion;
import dev.nereid.spi.BackendException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Directories without jars that a plugin runs as backends. */
final class ClaimedDirectoryTest {
    /** Claims directories with a file {@code main.script}, and says in the error of a creation what it was given. */
    private static final String SCRIPTS = """
            package scripts;

            import dev.nereid.spi.*;
            import java.nio.file.*;
            import java.util.Optional;

            public final class Scripts implements BackendProvider {
                public String name() { return "scripts"; }

                public Optional<String> claims(Path directory) {
                    if (!Files.exists(directory.resolve("main.script"))) {
                        return Optional.empty();
                    }
                    CLAIM
                }

                public Backend create(BackendContext context) {
                    throw new BackendException(ErrorCode.UNAVAILABLE, "VERSION " + context.name() + " in "
                        + context.pluginDirectory().getFileName() + ", level "
                        + context.settings().text("level").orElse("none"));
                }
            }
            """;

    private static final String CLAIM = "return Optional.of(directory.getFileName().toString());";

    @TempDir
    private Path plugins;

    @TempDir
    private Path cache;

    private BackendRegistry registry;

    @BeforeEach
    void open() {
        registry = BackendRegistry.open(
                List.of(plugins),
                List.of(),
                new PluginEnvironment(
                        new SpiVersion(1, 0),
                        Map.of("scripts", Map.of("level", "low"), "Summary.v2", Map.of("level", "high")),
                        cache,
                        2,
                        Map.of()));
    }

    @AfterEach
    void close() {
        registry.close();
    }

    @Test
    void createsABackendWithTheNameTheDirectoryAndTheSettingsOfIts() throws IOException {
        script("Summary.v2", "print");
        scripts(CLAIM, "1");

        assertThat(creation("Summary.v2")).isEqualTo("1 Summary.v2 in Summary.v2, level high");
        assertThat(creation("scripts")).isEqualTo("1 scripts in " + plugins.getFileName() + ", level low");
        assertThat(registry.statuses())
                .extracting(BackendStatus::backend, BackendStatus::plugin, BackendStatus::state)
                .containsExactly(
                        tuple("scripts", "scripts", BackendStatus.State.AVAILABLE),
                        tuple("Summary.v2", "scripts", BackendStatus.State.AVAILABLE));
    }

    @Test
    void checksADirectoryAgainWhenItsFilesChange() throws IOException {
        scripts(CLAIM, "1");
        Files.createDirectories(plugins.resolve("summary"));
        registry.refresh();
        assertThat(reasonOf("summary")).contains("no file *.jar in its directory");

        script("summary", "print");
        String digest = registry.digest("summary");
        long changes = registry.changes();
        assertThat(reasons()).isEmpty();
        registry.refresh();
        assertThat(registry.digest("summary")).isEqualTo(digest);
        assertThat(registry.changes()).isEqualTo(changes);

        script("summary", "print twice");
        assertThat(registry.digest("summary")).isNotEqualTo(digest);
        assertThat(registry.changes()).isGreaterThan(changes);
    }

    @Test
    void doesNotCountWhatPythonCompiles() throws IOException {
        scripts(CLAIM, "1");
        script("summary", "print");
        String digest = registry.digest("summary");

        Files.createDirectories(plugins.resolve("summary/__pycache__"));
        Files.writeString(plugins.resolve("summary/__pycache__/main.pyc"), "compiled");
        registry.refresh();

        assertThat(registry.digest("summary")).isEqualTo(digest);
    }

    @Test
    void endsTheBackendOfADirectoryThatIsGone() throws IOException {
        scripts(CLAIM, "1");
        script("summary", "print");
        Files.delete(plugins.resolve("summary/main.script"));
        Files.delete(plugins.resolve("summary"));
        registry.refresh();

        assertThat(creation("summary")).startsWith("unable to find backend library for backend 'summary'");
        assertThat(reasons()).isEmpty();
    }

    @Test
    void asksAReplacedPluginAgain() throws IOException {
        scripts(CLAIM, "1");
        script("summary", "print");

        scripts(CLAIM, "22");
        assertThat(creation("summary")).startsWith("22 summary");

        scripts("return Optional.empty();", "333");
        assertThat(creation("summary")).startsWith("unable to find backend library");
        assertThat(reasonOf("summary")).contains("no file *.jar in its directory");
    }

    @Test
    void prefersABackendOfJars() throws IOException {
        scripts(CLAIM, "1");
        script("summary", "print");
        PluginJar.of(SCRIPTS.replace("CLAIM", CLAIM)
                        .replace("VERSION", "jar")
                        .replace("package scripts", "package summary")
                        .replace("\"scripts\"", "\"summary\"")
                        .replace("main.script", "other"))
                .provider("summary.Scripts")
                .write(plugins.resolve("zz.jar"));
        registry.refresh();

        assertThat(creation("summary")).startsWith("jar summary");
        assertThat(reasonOf("summary"))
                .isEqualTo("backend name: 'summary' is the name of a backend of plugin 'zz' already"
                        + " (expected: a name of its own)");
    }

    @Test
    void reportsAProviderThatFailsOrGivesNoName() throws IOException {
        scripts("throw new IllegalStateException(\"no interpreter\");", "1");
        script("summary", "print");
        assertThat(reasonOf("summary")).contains("no interpreter");

        scripts("return Optional.of(\"../x\");", "22");
        assertThat(reasonOf("summary"))
                .isEqualTo("backend name: '../x' (expected: letters, digits, ., _ and -; given by backend 'scripts')");

        scripts("return null;", "333");
        assertThat(reasonOf("summary")).contains("null");
        assertThat(creation("scripts")).startsWith("333 scripts");
    }

    @Test
    void keepsTheReasonUntilSomethingChanges() throws IOException {
        scripts("throw new IllegalStateException(\"asked \" + System.nanoTime());", "1");
        script("summary", "print");
        String reason = reasonOf("summary");
        registry.refresh();
        registry.refresh();
        assertThat(reasonOf("summary")).isEqualTo(reason).contains("asked");
    }

    @Test
    void keepsABackendWhileItsProviderFails() throws IOException {
        scripts("if (Files.exists(directory.resolve(\"broken\"))) throw new IllegalStateException(); " + CLAIM, "1");
        script("summary", "print");
        Files.createFile(plugins.resolve("summary/broken"));
        registry.refresh();
        assertThat(creation("summary")).startsWith("1 summary");
        assertThat(reasonOf("summary")).contains("IllegalStateException");
        Files.delete(plugins.resolve("summary/broken"));
        registry.refresh();
        assertThat(reasons()).isEmpty();
    }

    @Test
    void asksOtherPluginsWhereOneFails() throws IOException {
        PluginJar.of(SCRIPTS.replace("CLAIM", "throw new IllegalStateException();")
                        .replace("VERSION", "wrong")
                        .replace("package scripts", "package first")
                        .replace("\"scripts\"", "\"first\""))
                .provider("first.Scripts")
                .write(plugins.resolve("aa.jar"));
        scripts(CLAIM, "1");
        script("summary", "print");

        assertThat(creation("summary")).startsWith("1 summary");
        assertThat(reasons()).isEmpty();
    }

    @Test
    void seesChangesBehindALink() throws IOException {
        Path target = Files.createDirectories(cache.resolve("summary-3/lib"));
        Files.writeString(cache.resolve("summary-3/main.script"), "print");
        Files.createSymbolicLink(plugins.resolve("summary"), cache.resolve("summary-3"));
        scripts(CLAIM, "1");
        String digest = registry.digest("summary");
        Files.writeString(target.resolve("words"), "one");
        registry.refresh();

        assertThat(creation("summary")).startsWith("1 summary");
        assertThat(registry.digest("summary")).isNotEqualTo(digest);
    }

    @Test
    void namesTheReasonOfADirectoryWhereItsBackendIsMissing() throws IOException {
        Files.createDirectories(plugins.resolve("summary"));
        registry.refresh();

        assertThat(creation("summary")).contains("Plugin 'summary' is broken: no file *.jar in its directory");
    }

    private void scripts(String claim, String version) {
        PluginJar.of(SCRIPTS.replace("CLAIM", claim).replace("VERSION", version))
                .provider("scripts.Scripts")
                .write(plugins.resolve("scripts.jar"));
        registry.refresh();
    }

    private void script(String directory, String text) throws IOException {
        Files.createDirectories(plugins.resolve(directory));
        Files.writeString(plugins.resolve(directory).resolve("main.script"), text);
        registry.refresh();
    }

    private String creation(String backend) {
        String[] message = new String[1];
        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> registry.acquire(backend))
                .satisfies(e -> message[0] = e.getMessage());
        return message[0];
    }

    private List<String> reasons() {
        return registry.statuses().stream()
                .filter(status -> status.state() == BackendStatus.State.BROKEN)
                .map(BackendStatus::reason)
                .toList();
    }

    private String reasonOf(String plugin) {
        return registry.statuses().stream()
                .filter(status -> status.state() == BackendStatus.State.BROKEN
                        && status.plugin().equals(plugin))
                .map(BackendStatus::reason)
                .findFirst()
                .orElseThrow();
    }
}
