package dev.nereid.backend.natives;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.io.OutputStream;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A framework whose libraries are in three jars, with small files in place of libraries. */
class SeveralJarsTest {
    private static final String JAVACPP = "org/bytedeco/javacpp/linux-x86_64/";
    private static final String OPENBLAS = "org/bytedeco/openblas/linux-x86_64/";
    private static final String PYTORCH = "org/bytedeco/pytorch/linux-x86_64/";
    private static final NativeProduct PRODUCT = new NativeProduct("PyTorch", "pytorch", "libtorch_cpu.so", "500 MB");
    private static final List<LibrarySource> SOURCES = List.of(
            LibrarySource.named("javacpp-…-linux-x86_64.jar", JAVACPP, List.of("libjnijavacpp.so")),
            LibrarySource.named(
                    "openblas-…-linux-x86_64.jar", OPENBLAS, List.of("libgfortran.so.5", "libopenblas.so.0")),
            LibrarySource.named("pytorch-…-linux-x86_64.jar", PYTORCH, List.of("libc10.so", "libtorch_cpu.so")));

    @TempDir
    private Path directory;

    private Path plugin;
    private Path cache;

    @BeforeEach
    void prepare() throws IOException {
        plugin = directory.resolve("plugin");
        Files.createDirectories(plugin.resolve("natives"));
        cache = directory.resolve("cache");
        jar("javacpp.jar", JAVACPP, "libjnijavacpp.so");
        jar("openblas.jar", OPENBLAS, "libgfortran.so.5", "libopenblas.so.0", "libopenblas_nolapack.so.0");
        jar("pytorch.jar", PYTORCH, "libc10.so", "libtorch_cpu.so", "libtorch_cuda.so");
    }

    /** Writes a jar with files whose contents are their names and the name of the jar. */
    private Path jar(String name, String prefix, String... files) throws IOException {
        Path jar = plugin.resolve("natives").resolve(name);
        try (OutputStream out = Files.newOutputStream(jar);
                ZipOutputStream zip = new ZipOutputStream(out)) {
            for (String file : files) {
                zip.putNextEntry(new ZipEntry(prefix + file));
                zip.write((file + " of " + name).getBytes(StandardCharsets.UTF_8));
                zip.closeEntry();
            }
        }
        return jar;
    }

    private LibraryArchive archive() throws IOException {
        try (URLClassLoader empty = new URLClassLoader(new URL[0], null)) {
            return LibraryArchive.find(plugin, empty, SOURCES);
        }
    }

    private Path find(Path... mapped) throws IOException {
        return LibraryDirectory.find(PRODUCT, archive(), cache, List.of(mapped), Disk.SYSTEM);
    }

    @Test
    void unpacksTheNamedLibrariesOfAllJarsIntoOneDirectory() throws IOException {
        Path found = find();

        assertThat(found.getParent()).isEqualTo(cache);
        assertThat(found.getFileName().toString()).matches("pytorch-[0-9a-f]{8}-[0-9a-f]+");
        assertThat(names(found))
                .containsExactlyInAnyOrder(
                        "libjnijavacpp.so", "libgfortran.so.5", "libopenblas.so.0", "libc10.so", "libtorch_cpu.so");
        assertThat(found.resolve("libopenblas.so.0")).hasContent("libopenblas.so.0 of openblas.jar");
        assertThat(find()).isEqualTo(found);
    }

    @Test
    void namesTheDirectoryByTheContentOfEveryJar() throws IOException {
        Path first = find();
        Files.move(plugin.resolve("natives/openblas.jar"), directory.resolve("openblas.jar"));
        jar("openblas-2.jar", OPENBLAS, "libgfortran.so.5", "libopenblas.so.0");

        Path second = find();

        assertThat(second).isNotEqualTo(first);
        assertThat(second.resolve("libopenblas.so.0")).hasContent("libopenblas.so.0 of openblas-2.jar");
        assertThat(first).as("no process has it mapped").doesNotExist();
    }

    @Test
    void leavesDirectoriesOfOtherFrameworks() throws IOException {
        Path other = Files.createDirectories(cache.resolve("tensorflow-01234567-89"));

        find();

        assertThat(other).exists();
    }

    @Test
    void repairsADirectoryThatLacksALibraryOfAnyJar() throws IOException {
        Path found = find();
        Files.delete(found.resolve("libjnijavacpp.so"));

        assertThat(find()).isEqualTo(found);
        assertThat(found.resolve("libjnijavacpp.so")).exists();
        assertThat(names(cache)).containsExactly(found.getFileName().toString());
    }

    @Test
    void usesAMappedCopyWithTheSameContentAndRefusesAnother() throws IOException {
        Path mapped = Files.move(find(), directory.resolve("elsewhere"));

        assertThat(find(mapped.resolve("libtorch_cpu.so"))).isEqualTo(mapped);
        assertThat(names(cache)).isEmpty();

        Files.writeString(mapped.resolve("libc10.so"), "another content");
        assertThatThrownBy(() -> find(mapped.resolve("libtorch_cpu.so")))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageMatching("another PyTorch is loaded in this process, from elsewhere \\(expected:"
                        + " pytorch-\\S+\\): restart the server to use this one");
    }

    @Test
    void namesTheJarThatIsMissing() throws IOException {
        Files.delete(plugin.resolve("natives/openblas.jar"));

        assertThatThrownBy(this::find)
                .isInstanceOf(IOException.class)
                .hasMessage(
                        "libgfortran.so.5: missing (expected: openblas-…-linux-x86_64.jar in the directory natives of"
                                + " the plugin)");
    }

    @Test
    void namesTheLibraryThatAJarLacks() throws IOException {
        jar("openblas.jar", OPENBLAS, "libgfortran.so.5");

        assertThatThrownBy(this::find).hasMessageStartingWith("libopenblas.so.0: missing (expected: openblas-…");
    }

    /** A jar with a part of the libraries does not hide the jar that has them all. */
    @Test
    void takesTheJarThatHasAllLibrariesOfASource() throws IOException {
        jar("a.jar", OPENBLAS, "libgfortran.so.5");

        assertThat(find().resolve("libgfortran.so.5")).hasContent("libgfortran.so.5 of openblas.jar");
    }

    @Test
    void refusesALibraryThatTwoSourcesHave() {
        List<LibrarySource> sources = List.of(
                LibrarySource.named("a.jar", OPENBLAS, List.of("libopenblas.so.0")),
                LibrarySource.named("b.jar", OPENBLAS, List.of("libopenblas.so.0")));

        assertThatThrownBy(() -> LibraryArchive.find(plugin, getClass().getClassLoader(), sources))
                .isInstanceOf(IOException.class)
                .hasMessage("libopenblas.so.0: twice, in openblas.jar and in openblas.jar (expected: once)");
    }

    @Test
    void namesTheJarThatIsDamaged() throws IOException {
        LibraryArchive archive = archive();
        Files.writeString(plugin.resolve("natives/openblas.jar"), "no jar");

        assertThatThrownBy(() -> LibraryDirectory.find(PRODUCT, archive, cache, List.of(), Disk.SYSTEM))
                .isInstanceOf(IOException.class)
                .hasMessage("openblas.jar: damaged (expected: a jar)");
        assertThat(names(cache)).isEmpty();
    }

    /** A jar that was replaced after its list was read has other libraries. */
    @Test
    void refusesAJarThatWasReplacedMeanwhile() throws IOException {
        LibraryArchive archive = archive();
        jar("openblas.jar", OPENBLAS, "libgfortran.so.5");

        assertThatThrownBy(() -> LibraryDirectory.find(PRODUCT, archive, cache, List.of(), Disk.SYSTEM))
                .isInstanceOf(IOException.class)
                .hasMessage("openblas.jar: damaged (expected: a jar)");
    }

    @Test
    void refusesDescriptionsThatNameNothing() {
        assertThatThrownBy(() -> LibrarySource.named("a.jar", OPENBLAS, List.of()))
                .isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> LibrarySource.named("a.jar", "org/bytedeco", List.of("a.so")))
                .hasMessage("directory: org/bytedeco (expected: a slash at its end)");
        assertThatThrownBy(() -> new NativeProduct("PyTorch", "../pytorch", "libtorch_cpu.so", "500 MB"))
                .hasMessage("prefix: ../pytorch (expected: lower-case letters and digits)");
    }

    private static List<String> names(Path directory) throws IOException {
        if (!Files.exists(directory)) {
            return List.of();
        }
        try (Stream<Path> files = Files.list(directory)) {
            return files.map(file -> file.getFileName().toString()).toList();
        }
    }
}
