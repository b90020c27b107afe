package dev.nereid.plugin;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.nereid.plugin.jar.PluginException;
import dev.nereid.plugin.jar.PluginNatives;
import dev.nereid.plugin.jar.PluginSource;
import dev.nereid.plugin.jar.SpiVersion;
import java.io.Closeable;
import java.io.File;
import java.io.IOException;
import java.lang.ref.WeakReference;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Function;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A native library of several plugins and servers of one process. What a library has counted shows how many there are. */
@Tag("slow")
final class SharedLibraryTest {
    private static final long LIMIT_NANOS = TimeUnit.SECONDS.toNanos(30);
    private static final AtomicInteger TESTS = new AtomicInteger();

    /** The process keeps a library for ever, so each test has another one. */
    private final String name = "counter-" + TESTS.incrementAndGet();

    @TempDir
    private Path files;

    private Path plugins;
    private Path cache;
    private Path library;

    @BeforeEach
    void build() throws Exception {
        plugins = Files.createDirectory(files.resolve("plugins"));
        cache = files.resolve("cache");
        library = NativeLibrary.build(files).write(files.resolve("lib.jar"));
    }

    /** A plugin that is unavailable for the reason that the library has counted so far. */
    private void write(String plugin, String shared, String text) throws Exception {
        Path directory = plugins.resolve(plugin);
        PluginJar.of("public class Probe implements dev.nereid.spi.BackendProvider {"
                        + " public String name() { return \"" + plugin + "\"; }"
                        + " public java.util.Optional<String> unavailable() {"
                        + " return java.util.Optional.of(\"" + text + "\" + lib.Counter.next()); }"
                        + " public dev.nereid.spi.Backend create(dev.nereid.spi.BackendContext c) { return null; } }")
                .provider("Probe")
                .attribute("Nereid-Shared", shared)
                .compiledAgainst(library)
                .write(directory.resolve("plugin.jar"));
        Files.copy(library, directory.resolve("lib.jar"));
    }

    private BackendRegistry open() {
        return BackendRegistry.open(
                List.of(plugins), List.of(), new PluginEnvironment(new SpiVersion(1, 0), Map.of(), cache, 2, Map.of()));
    }

    private static List<String> reasons(BackendRegistry registry) {
        return registry.statuses().stream().map(BackendStatus::reason).toList();
    }

    @Test
    void isOneForTwoPluginsAndServers() throws Exception {
        write("one", name, "");
        write("two", name + " lib*.jar", "");

        try (BackendRegistry first = open();
                BackendRegistry second = open()) {
            assertThat(reasons(first)).containsExactly("1", "2");
            assertThat(reasons(second)).containsExactly("3", "4");
        }
        try (BackendRegistry again = open()) {
            assertThat(reasons(again)).containsExactly("5", "6");
        }
    }

    @Test
    void withoutTheLineTheSecondOneIsToldTheCure() throws Exception {
        write("one", "", "");
        write("two", "", "");

        try (BackendRegistry registry = open()) {
            List<String> reasons = reasons(registry);
            assertThat(reasons.getFirst()).isEqualTo("1");
            assertThat(reasons.getLast())
                    .contains("already loaded in another classloader")
                    .contains("add 'Nereid-Shared: NAME' to the manifest of the plugin");
        }
    }

    @Test
    void staysWhenAPluginIsReplaced() throws Exception {
        write("one", name, "first ");
        try (BackendRegistry registry = open()) {
            assertThat(reasons(registry)).containsExactly("first 1");
            Files.delete(plugins.resolve("one/lib.jar"));
            write("one", name, "second ");

            registry.refresh();

            assertThat(reasons(registry)).containsExactly("second 2");
        }
    }

    @Test
    void ofOtherContentIsRefusedUntilARestart() throws Exception {
        write("one", name, "");
        try (BackendRegistry registry = open()) {
            assertThat(reasons(registry)).containsExactly("1");
            NativeLibrary.build(files).entry("VERSION", "2").write(files.resolve("other.jar"));
            write("two", name, "");
            Files.delete(plugins.resolve("two/lib.jar"));
            Files.copy(files.resolve("other.jar"), plugins.resolve("two/lib.jar"));

            registry.refresh();

            assertThat(reasons(registry))
                    .containsExactly(
                            "2",
                            "Nereid-Shared: " + name + ": its jars have other content than those of plugin 'one', which"
                                    + " the process has loaded (expected: equal jars in all plugins that share the"
                                    + " library, or a restart of the process, since a second copy of a native library"
                                    + " can end the JVM)");
        }
    }

    /** As after a restart by Spring's devtools: the classes of the server are loaded twice. */
    @Test
    void isOneForServersOfTwoClassLoaders() throws Exception {
        write("one", name, "");

        WeakReference<ClassLoader> first = startTwo();

        assertThat(isCollected(first)).as("the library keeps no server").isTrue();
        try (URLClassLoader loader = server();
                Server third = Server.of(loader)) {
            assertThat(third.plugins().apply(List.of(plugins, cache))).containsExactly("3");
        }
    }

    /** In a method, since variables of the stack may keep objects. */
    private WeakReference<ClassLoader> startTwo() throws Exception {
        try (URLClassLoader loader = server();
                Server one = Server.of(loader);
                URLClassLoader other = server();
                Server two = Server.of(other)) {
            assertThat(one.plugins().apply(List.of(plugins, cache))).containsExactly("1");
            assertThat(two.plugins().apply(List.of(plugins, cache))).containsExactly("2");
            return new WeakReference<>(loader);
        }
    }

    /** A server behind types of the JDK. */
    private record Server(Function<List<Path>, List<String>> plugins, Closeable end) implements Closeable {
        @SuppressWarnings("unchecked")
        static Server of(ClassLoader loader) throws ReflectiveOperationException {
            Object server = loader.loadClass(ServerOfAnyLoader.class.getName())
                    .getConstructor()
                    .newInstance();
            return new Server((Function<List<Path>, List<String>>) server, (Closeable) server);
        }

        @Override
        public void close() throws IOException {
            end.close();
        }
    }

    private static URLClassLoader server() throws Exception {
        List<URL> path = new ArrayList<>();
        for (String entry : System.getProperty("java.class.path").split(File.pathSeparator, -1)) {
            path.add(Path.of(entry).toUri().toURL());
        }
        return new URLClassLoader("server", path.toArray(URL[]::new), ClassLoader.getPlatformClassLoader());
    }

    private static boolean isCollected(WeakReference<?> reference) {
        long start = System.nanoTime();
        while (!reference.refersTo(null)) {
            if (System.nanoTime() - start > LIMIT_NANOS) {
                return false;
            }
            System.gc();
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(5));
        }
        return true;
    }

    @Test
    void consistsOfTheJarsThatAreMeant() throws Exception {
        write("one", "a,b lib.jar", "");
        refuses("one", "Nereid-Shared: a: 'b' (expected: the file name of a jar without a provider");
        write("two", "a/b", "");
        refuses("two", "Nereid-Shared: [a/b] (expected: one name");
        write("three", "a", "");
        Files.delete(plugins.resolve("three/lib.jar"));
        refuses("three", "Nereid-Shared: a: no jar of a library");
    }

    private void refuses(String plugin, String text) {
        assertThatExceptionOfType(PluginException.class)
                .isThrownBy(() -> PluginNatives.of(source(plugin)))
                .withMessageContaining(text);
    }

    @Test
    void advisesThePluginThatDoesNotMentionItsLibrary() throws Exception {
        write("one", "", "");
        write("two", "", "");
        NativeLibrary.build(files).attribute("Nereid-Native", "false").write(plugins.resolve("two/lib.jar"));
        write("three", name, "");
        write("four", "", "");
        NativeLibrary.build(files).attribute("Nereid-Native", "true").write(plugins.resolve("four/lib.jar"));

        assertThat(PluginNatives.of(source("one")).advice())
                .hasValueSatisfying(text -> assertThat(text)
                        .startsWith("native library in a plugin without 'Nereid-Native: true' in a manifest:"
                                + " lib.jar!/native/libcounter.so; ")
                        .contains("<nereid.native>true</nereid.native>"));
        assertThat(PluginNatives.of(source("two")).advice()).isEmpty();
        assertThat(PluginNatives.of(source("three")).advice()).isEmpty();
        assertThat(PluginNatives.of(source("four")).advice()).isEmpty();
        assertThat(PluginNatives.of(source("four")).isKept()).isTrue();
        assertThat(PluginNatives.of(source("two")).isKept()).isFalse();
    }

    @Test
    void knowsThePluginsThatRunALibrary() throws Exception {
        for (String line : List.of("true", "foreign", "false")) {
            write(line, "", "");
            NativeLibrary.build(files).attribute("Nereid-Native", line).write(plugins.resolve(line + "/lib.jar"));
        }
        write("unmentioned", "", "");
        write("shared", name + " other.jar", "");
        Files.delete(plugins.resolve("shared/lib.jar"));
        write("without", "", "");
        Files.delete(plugins.resolve("without/lib.jar"));
        write("broken", "", "");
        Files.writeString(plugins.resolve("broken/lib.jar"), "this is no jar");

        assertThat(List.of("true", "foreign", "false", "unmentioned", "shared", "without", "broken"))
                .filteredOn(plugin -> PluginNatives.runsLibrary(source(plugin)))
                .containsExactly("true", "foreign", "unmentioned", "shared");
        assertThat(PluginNatives.of(source("foreign")).isKept()).isFalse();
        assertThat(PluginNatives.of(source("foreign")).advice()).isEmpty();
    }

    private PluginSource source(String plugin) {
        Path directory = plugins.resolve(plugin);
        List<Path> jars = List.of(directory.resolve("lib.jar"), directory.resolve("plugin.jar"));
        return new PluginSource(
                plugin, directory, jars.stream().filter(Files::exists).toList());
    }
}
