package dev.nereid.plugin;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.tuple;

import dev.nereid.plugin.jar.SpiVersion;
import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ModelSettings;
import dev.nereid.testkit.FakeModelContext;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Plugins come and go: leases, class loaders, and jars that change while their plugin is loaded. */
final class PluginUnloadTest {
    private static final String PROVIDER = """
            package late;

            import dev.nereid.spi.*;

            public final class Late implements BackendProvider {
                public Late() {
                    LOADER
                }

                public String name() { return "NAME"; }

                public Backend create(BackendContext context) {
                    return new Backend() {
                        public Model load(ModelContext model) {
                            throw new BackendException(ErrorCode.UNAVAILABLE, Text.of());
                        }
                    };
                }
            }
            """;

    /** Needed by the first load alone, and in a jar of its own that nothing else opens. */
    private static final String LATE =
            "package late; public final class Text {" + " public static String of() { return \"TEXT\"; } }";

    @TempDir
    private Path plugins;

    @TempDir
    private Path cache;

    @Test
    void dropsTheClassLoaderWithTheLastLease() throws Exception {
        write("one", "first");
        try (BackendRegistry registry = open();
                UnloadWatch watch = new UnloadWatch()) {
            BackendLease first = registry.acquire("one");
            BackendLease second = registry.acquire("one");
            assertThat(text(first)).isEqualTo("first");
            first.close();
            assertThat(watch.loaded()).isEqualTo(1); // the second lease keeps it

            second.close();

            assertThat(watch.awaitUnloaded()).isTrue();
            try (BackendLease again = registry.acquire("one")) {
                assertThat(text(again)).isEqualTo("first");
                assertThat(watch.loaded()).isEqualTo(1);
            }
            assertThat(watch.awaitUnloaded()).isTrue();
        }
    }

    @Test
    void dropsTheClassLoaderAfterStatusesAndFailures() throws Exception {
        write("one", "first");
        try (BackendRegistry registry = open();
                UnloadWatch watch = new UnloadWatch()) {
            assertThat(registry.statuses()).hasSize(1);
            assertThat(watch.awaitUnloaded()).isTrue();
        }
    }

    @Test
    void keepsAPluginWithNativeLibrariesUntilTheRegistryIsClosed() throws Exception {
        plugin("one", "first").attribute("Nereid-Native", "true").write(plugins.resolve("one/plugin.jar"));
        late("first").write(plugins.resolve("one/late.jar"));
        try (UnloadWatch watch = new UnloadWatch()) {
            try (BackendRegistry registry = open()) {
                assertThat(watch.loaded()).isEqualTo(1);
                assertSameBackend(registry);
                assertThat(watch.loaded()).isEqualTo(1);
            }
            assertThat(watch.awaitUnloaded()).isTrue();
        }
    }

    @Test
    void loadsClassesAfterTheJarsWereReplacedOrCut() throws Exception {
        write("one", "first");
        write("two", "first");
        try (BackendRegistry registry = open();
                BackendLease one = registry.acquire("one");
                BackendLease two = registry.acquire("two")) {
            late("second").write(plugins.resolve("one/late.jar"));
            Files.write(plugins.resolve("two/late.jar"), new byte[0], StandardOpenOption.TRUNCATE_EXISTING);

            assertThat(text(one)).isEqualTo("first");
            assertThat(text(two)).isEqualTo("first");
        }
    }

    @Test
    void opensTheRegisteredPluginAgainAfterItsJarsWereDeleted() throws Exception {
        write("one", "first");
        try (BackendRegistry registry = open()) {
            registry.acquire("one").close();
            Files.delete(plugins.resolve("one/late.jar"));
            Files.delete(plugins.resolve("one/plugin.jar"));

            try (BackendLease lease = registry.acquire("one")) {
                assertThat(text(lease)).isEqualTo("first");
            }
        }
    }

    @Test
    void addsPluginsWhileOthersAreLeased() throws Exception {
        write("one", "first");
        Files.writeString(plugins.resolve("two.jar"), "this is no zip file");
        try (BackendRegistry registry = open();
                BackendLease one = registry.acquire("one")) {
            assertThatThrownBy(() -> registry.acquire("two")).hasMessageContaining("Plugin 'two' is broken");
            Files.delete(plugins.resolve("two.jar"));
            write("two", "second");
            write("three", "third");

            registry.refresh();

            assertThat(registry.statuses())
                    .extracting(BackendStatus::backend, BackendStatus::state)
                    .containsExactly(
                            tuple("one", BackendStatus.State.AVAILABLE),
                            tuple("three", BackendStatus.State.AVAILABLE),
                            tuple("two", BackendStatus.State.AVAILABLE));
            try (BackendLease two = registry.acquire("two");
                    BackendLease same = registry.acquire("one")) {
                assertThat(text(two)).isEqualTo("second");
                assertThat(same.backend()).isSameAs(one.backend());
                assertThat(same.digest()).isNotEqualTo(two.digest());
            }
        }
    }

    @Test
    void replacesAPluginWhoseJarsHaveChangedAndDropsItsClassLoader() throws Exception {
        write("one", "first");
        try (BackendRegistry registry = open();
                UnloadWatch watch = new UnloadWatch()) {
            BackendLease old = registry.acquire("one");
            String digest = registry.digest("one");
            late("second").write(plugins.resolve("one/late.jar"));

            registry.refresh();

            try (BackendLease fresh = registry.acquire("one")) {
                assertThat(text(fresh)).isEqualTo("second");
                assertThat(text(old)).isEqualTo("first");
                assertThat(watch.loaded()).isEqualTo(2);
                old.close();
            }
            assertThat(watch.awaitUnloaded()).isTrue();
            assertThat(registry.digest("one")).isNotEqualTo(digest);
            assertThat(registry.changes()).isEqualTo(2);
            registry.refresh();
            assertThat(registry.changes()).isEqualTo(2);
        }
    }

    /** Copies of jars, locks on them, and open jars: none of a plugin that was replaced, nor of one that is broken. */
    @Tag("slow")
    @Test
    void leavesNothingOfReplacedAndBrokenPlugins() throws Exception {
        write("one", "text 0");
        try (BackendRegistry registry = open()) {
            registry.acquire("one").close();
            long descriptors = descriptors();
            for (int i = 1; i <= 20; i++) {
                try (BackendLease old = registry.acquire("one")) {
                    late("text " + i).write(plugins.resolve("one/late.jar"));
                    registry.refresh();
                    assertThat(text(old)).isEqualTo("text " + (i - 1));
                    assertThat(copies()).hasSize(2);
                }
                try (BackendLease fresh = registry.acquire("one")) {
                    assertThat(text(fresh)).isEqualTo("text " + i);
                }
                Files.writeString(plugins.resolve("broken.jar"), "no jar " + i);
                PluginJar.of(LATE.replace("TEXT", "broken " + i))
                        .provider("late.Missing")
                        .write(plugins.resolve("missing.jar"));
                registry.refresh();
                assertThat(copies()).hasSize(1);
            }
            assertThat(descriptors()).isEqualTo(descriptors);
        }
        assertThat(copies()).as("for the next start").hasSize(1);
        assertThat(descriptors()).isZero();
    }

    /** Two directories with equal jars share the copies. */
    @Test
    void keepsCopiesThatAnotherPluginUses() throws Exception {
        write("one", "first");
        try (BackendRegistry registry = open()) {
            Files.createDirectories(plugins.resolve("two"));
            for (String jar : List.of("late.jar", "plugin.jar")) {
                Files.copy(
                        plugins.resolve("one").resolve(jar),
                        plugins.resolve("two").resolve(jar));
            }
            registry.refresh(); // refused, since the name of its backend is taken

            try (BackendLease lease = registry.acquire("one")) {
                assertThat(text(lease)).isEqualTo("first");
            }
            assertThat(copies()).hasSize(1);
        }
    }

    private List<String> copies() throws IOException {
        try (Stream<Path> entries = Files.list(cache.resolve("jars"))) {
            return entries.map(entry -> entry.getFileName().toString()).toList();
        }
    }

    /** Returns how many files below the cache directory this process has open. */
    private long descriptors() throws IOException {
        String below = cache.toRealPath().toString();
        long count = 0;
        try (DirectoryStream<Path> open = Files.newDirectoryStream(Path.of("/proc/self/fd"))) {
            for (Path one : open) {
                try {
                    count += Files.readSymbolicLink(one).toString().startsWith(below) ? 1 : 0;
                } catch (NoSuchFileException e) {
                    // closed meanwhile
                }
            }
        }
        return count;
    }

    @Test
    void leavesAPluginInPlaceWhoseNewJarIsBroken() throws Exception {
        write("one", "first");
        try (BackendRegistry registry = open()) {
            Files.writeString(plugins.resolve("one/late.jar"), "half a jar");
            registry.refresh();

            assertThat(registry.statuses())
                    .extracting(BackendStatus::backend, BackendStatus::state)
                    .containsExactly(
                            tuple("one", BackendStatus.State.AVAILABLE), tuple("", BackendStatus.State.BROKEN));
            try (BackendLease lease = registry.acquire("one")) {
                assertThat(text(lease)).isEqualTo("first");
            }

            late("second").write(plugins.resolve("one/late.jar"));
            registry.refresh();

            assertThat(registry.statuses())
                    .extracting(BackendStatus::state)
                    .containsExactly(BackendStatus.State.AVAILABLE);
            try (BackendLease lease = registry.acquire("one")) {
                assertThat(text(lease)).isEqualTo("second");
            }
        }
    }

    @Test
    void replacesAPluginByOneOfAnotherFileNameOnceItsFilesAreGone() throws Exception {
        plugin("one", "first").write(plugins.resolve("one-1.jar"));
        try (BackendRegistry registry = open()) {
            String first = registry.digest("one");
            plugin("one", "second").write(plugins.resolve("one-2.jar"));
            registry.refresh();
            assertThat(registry.digest("one")).isEqualTo(first);
            assertThat(registry.statuses())
                    .filteredOn(status -> status.state() == BackendStatus.State.BROKEN)
                    .singleElement()
                    .extracting(BackendStatus::reason)
                    .asString()
                    .contains("is the name of a backend of plugin 'one-1' already");

            Files.delete(plugins.resolve("one-1.jar"));
            registry.refresh();

            assertThat(registry.digest("one")).isNotEmpty().isNotEqualTo(first);
            assertThat(registry.statuses()).hasSize(1);
        }
    }

    @Test
    void leavesAPluginWithNativeLibrariesUntilARestart() throws Exception {
        late("first").write(plugins.resolve("one/late.jar"));
        plugin("one", "first").attribute("Nereid-Native", "true").write(plugins.resolve("one/plugin.jar"));
        try (BackendRegistry registry = open()) {
            late("second").write(plugins.resolve("one/late.jar"));
            registry.refresh();
            registry.refresh();

            try (BackendLease lease = registry.acquire("one")) {
                assertThat(text(lease)).isEqualTo("first");
            }
            assertThat(registry.statuses())
                    .singleElement()
                    .extracting(BackendStatus::reason)
                    .asString()
                    .contains("needs a restart", "native libraries", "class loader");
        }
    }

    @Test
    void leavesAPluginWithNativeLibrariesAlsoIfItsFileHasAnotherName() throws Exception {
        plugin("one", "first").attribute("Nereid-Native", "true").write(plugins.resolve("one-1/plugin.jar"));
        late("first").write(plugins.resolve("one-1/late.jar"));
        try (BackendRegistry registry = open()) {
            String first = registry.digest("one");
            Files.move(plugins.resolve("one-1"), plugins.resolve("one-2"));
            late("second").write(plugins.resolve("one-2/late.jar"));
            registry.refresh();

            assertThat(registry.digest("one")).isEqualTo(first);
            assertThat(registry.statuses())
                    .extracting(BackendStatus::plugin, BackendStatus::reason)
                    .containsExactly(
                            tuple("one-1", PluginSlot.RESTART),
                            tuple(
                                    "one-2",
                                    "takes the place of plugin 'one-1', whose jars are gone: " + PluginSlot.RESTART));
            assertThatThrownBy(() -> registry.acquire("two"))
                    .hasMessageContaining(" Plugin 'one-1': " + PluginSlot.RESTART + ".");
            try (BackendLease lease = registry.acquire("one")) {
                assertThat(lease.notice()).isEqualTo(PluginSlot.RESTART);
            }
        }
    }

    @Test
    void keepsAPluginThatIsDeletedAndAddedAgain() throws Exception {
        write("one", "first");
        try (BackendRegistry registry = open();
                BackendLease old = registry.acquire("one")) {
            Files.move(plugins.resolve("one"), cache.resolve("aside"));
            registry.refresh();
            try (BackendLease lease = registry.acquire("one")) {
                assertThat(lease.backend()).as("it serves on").isSameAs(old.backend());
            }

            Files.move(cache.resolve("aside"), plugins.resolve("one"));
            registry.refresh();

            try (BackendLease lease = registry.acquire("one")) {
                assertThat(lease.backend()).isSameAs(old.backend());
            }
            assertThat(registry.changes()).isEqualTo(1);
        }
    }

    /** Kubernetes mounts a volume as links to a hidden directory, and replaces it by one rename of a link. */
    @Test
    void followsLinksOfAMountedVolume() throws Exception {
        late("first").write(cache.resolve("first/late.jar"));
        plugin("one", "first").write(cache.resolve("first/plugin.jar"));
        late("second").write(cache.resolve("second/late.jar"));
        plugin("one", "second").write(cache.resolve("second/plugin.jar"));
        Files.createSymbolicLink(plugins.resolve("..data"), cache.resolve("first"));
        Files.createSymbolicLink(plugins.resolve("one"), Path.of("..data"));
        try (BackendRegistry registry = open();
                UnloadWatch watch = new UnloadWatch()) {
            try (BackendLease lease = registry.acquire("one")) {
                assertThat(text(lease)).isEqualTo("first");
                Files.createSymbolicLink(plugins.resolve("..next"), cache.resolve("second"));
                Files.move(
                        plugins.resolve("..next"),
                        plugins.resolve("..data"),
                        StandardCopyOption.ATOMIC_MOVE,
                        StandardCopyOption.REPLACE_EXISTING);

                registry.refresh();

                assertThat(text(lease)).isEqualTo("first");
            }
            try (BackendLease lease = registry.acquire("one")) {
                assertThat(text(lease)).isEqualTo("second");
            }
            assertThat(watch.awaitUnloaded()).isTrue();
        }
    }

    /** A copy in progress is reported, and checked again as long as it changes. */
    @Test
    void usesAJarThatIsCopiedSlowlyOnceItIsComplete() throws Exception {
        Path complete = plugin("one", "first").write(cache.resolve("one.jar"));
        byte[] bytes = Files.readAllBytes(complete);
        Path copied = plugins.resolve("one").resolve("one.jar");
        late("first").write(plugins.resolve("one/late.jar"));
        try (BackendRegistry registry = open()) {
            for (int length = 0; length < bytes.length; length += bytes.length / 8) {
                Files.write(copied, Arrays.copyOf(bytes, length));
                registry.refresh();
                assertThat(registry.statuses())
                        .extracting(BackendStatus::state)
                        .containsExactly(BackendStatus.State.BROKEN);
            }
            Files.write(copied, bytes);
            registry.refresh();

            assertThat(registry.statuses())
                    .extracting(BackendStatus::state)
                    .containsExactly(BackendStatus.State.AVAILABLE);
            try (BackendLease lease = registry.acquire("one")) {
                assertThat(text(lease)).isEqualTo("first");
            }
        }
    }

    @Test
    void usesThePluginInPlaceWithoutACacheDirectory() throws Exception {
        write("one", "first");
        Path none = Files.writeString(cache.resolve("file"), "not a directory");
        try (BackendRegistry registry = BackendRegistry.open(
                        List.of(plugins),
                        List.of(),
                        new PluginEnvironment(new SpiVersion(1, 0), Map.of(), none, 2, Map.of()));
                BackendLease one = registry.acquire("one")) {
            assertThat(text(one)).isEqualTo("first");
        }
    }

    /** Acquires the backend one lease after the other. */
    private static void assertSameBackend(BackendRegistry registry) {
        BackendLease first = registry.acquire("one");
        Backend backend = first.backend();
        first.close();
        try (BackendLease second = registry.acquire("one")) {
            assertThat(second.backend()).isSameAs(backend);
        }
    }

    private BackendRegistry open() {
        return BackendRegistry.open(
                List.of(plugins), List.of(), new PluginEnvironment(new SpiVersion(1, 0), Map.of(), cache, 2, Map.of()));
    }

    private void write(String name, String text) throws IOException {
        late(text).write(plugins.resolve(name + "/late.jar"));
        plugin(name, text).write(plugins.resolve(name + "/plugin.jar"));
    }

    private static PluginJar plugin(String name, String text) {
        return PluginJar.of(
                        PROVIDER.replace("NAME", name).replace("LOADER", UnloadWatch.REGISTRATION),
                        LATE.replace("TEXT", text))
                .provider("late.Late")
                .without("late.Text");
    }

    private static PluginJar late(String text) {
        return PluginJar.of(LATE.replace("TEXT", text)).spiVersion("");
    }

    private static String text(BackendLease lease) {
        try {
            lease.backend()
                    .load(new FakeModelContext(ModelSettings.builder("m", 1).build(), Path.of("none")));
            throw new AssertionError("expected an exception");
        } catch (BackendException e) {
            return String.valueOf(e.getMessage());
        }
    }
}
