package dev.nereid.backend.natives;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.RandomAccessFile;
import java.lang.foreign.Arena;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Finding, unpacking and removing, with small files in place of libraries. */
class LibraryDirectoryTest {
    private static final String LIBRARY = "libtensorflow_cc.so.2";
    private static final String GPU = "org/tensorflow/internal/c_api/linux-x86_64-gpu/";
    private static final String PREFIX = "org/tensorflow/internal/c_api/linux-x86_64/";
    private static final NativeProduct PRODUCT = new NativeProduct("TensorFlow", "tensorflow", LIBRARY, "700 MB");
    private static final LibrarySource SOURCE = new LibrarySource(
            "tensorflow-core-native-…-linux-x86_64.jar",
            List.of(GPU, PREFIX),
            List.of(LIBRARY),
            name -> !name.startsWith("libjni"));

    @TempDir
    private Path directory;

    private Path plugin;
    private Path cache;

    @BeforeEach
    void prepare() throws IOException {
        plugin = Files.createDirectory(directory.resolve("plugin"));
        cache = directory.resolve("cache");
    }

    private Path artifact(String content) throws IOException {
        Path jar = Files.createDirectories(plugin.resolve("natives")).resolve("tensorflow-core-native.jar");
        try (OutputStream out = Files.newOutputStream(jar);
                ZipOutputStream zip = new ZipOutputStream(out)) {
            write(zip, "libtensorflow_cc.so.2", content);
            write(zip, "libtensorflow_framework.so.2", "framework of " + content);
            write(zip, "libjnitensorflow.so", "not used");
            write(zip, "LICENSE", "not a library");
        }
        return jar;
    }

    private static void write(ZipOutputStream zip, String name, String content) throws IOException {
        zip.putNextEntry(new ZipEntry(PREFIX + name));
        zip.write(content.getBytes(StandardCharsets.UTF_8));
        zip.closeEntry();
    }

    private Path find(Path... mapped) throws IOException {
        return find(Disk.SYSTEM, mapped);
    }

    private Path find(Disk disk, Path... mapped) throws IOException {
        try (URLClassLoader empty = new URLClassLoader(new URL[0], null)) {
            LibraryArchive archive = LibraryArchive.find(plugin, empty, List.of(SOURCE));
            return LibraryDirectory.find(PRODUCT, archive, cache, List.of(mapped), disk)
                    .resolve(LIBRARY);
        }
    }

    @Test
    void unpacksBothLibrariesAndNothingElse() throws IOException {
        artifact("one");

        Path library = find();

        assertThat(library).hasContent("one").hasFileName("libtensorflow_cc.so.2");
        assertThat(filesBelow(cache))
                .containsExactlyInAnyOrder(library, library.resolveSibling("libtensorflow_framework.so.2"));
    }

    @Test
    void takesWhatAnEarlierStartUnpackedAndReplacesWhatWasCutShort() throws IOException {
        artifact("one");
        Path library = find();
        Files.setLastModifiedTime(library, FileTime.fromMillis(0));

        assertThat(find()).isEqualTo(library);
        assertThat(Files.getLastModifiedTime(library)).isEqualTo(FileTime.fromMillis(0));

        Files.writeString(library, "on");
        assertThat(find()).isEqualTo(library).hasContent("one");
        assertThat(filesBelow(cache)).hasSize(2);
    }

    @Test
    void unpacksOnceForManyAtTheSameTime() throws Exception {
        artifact("one");
        try (ExecutorService threads = Executors.newFixedThreadPool(8)) {
            List<Future<Path>> found = IntStream.range(0, 32)
                    .mapToObj(_ -> threads.submit(() -> find()))
                    .toList();
            for (Future<Path> path : found) {
                assertThat(path.get()).hasContent("one");
            }
        }
        assertThat(filesBelow(cache)).hasSize(2);
    }

    @Test
    void repairsOnceForManyAtTheSameTime() throws Exception {
        artifact("one");
        Path library = find();
        for (int round = 0; round < 20; round++) {
            Files.writeString(library, "on");
            try (ExecutorService threads = Executors.newFixedThreadPool(8)) {
                List<Future<Path>> found = IntStream.range(0, 16)
                        .mapToObj(_ -> threads.submit(() -> find()))
                        .toList();
                for (Future<Path> path : found) {
                    assertThat(path.get()).isEqualTo(library);
                }
            }
            assertThat(library).hasContent("one");
            assertThat(cache).isDirectoryNotContaining(entry -> !library.startsWith(entry));
        }
    }

    @Test
    void replacesAFileThatIsInPlaceOfTheDirectory() throws IOException {
        artifact("one");
        Path target = find().getParent();
        cache = Files.createDirectory(directory.resolve("other"));
        Files.writeString(cache.resolve(target.getFileName()), "a file");

        assertThat(find()).hasContent("one");
    }

    @Test
    void unpacksForEveryUserThatTheProcessCreatesFilesFor() throws IOException {
        artifact("one");

        assertThat(Files.getPosixFilePermissions(find().getParent()))
                .isEqualTo(Files.getPosixFilePermissions(Files.createDirectory(directory.resolve("usual"))));
    }

    @Test
    void saysWhyItCannotUnpack() throws IOException {
        artifact("one");
        Files.writeString(cache, "a file");

        assertThatThrownBy(this::find)
                .isInstanceOf(IOException.class)
                .hasMessage("its library cannot be unpacked: a file is in place of the directory (expected: 700 MB free"
                        + " in a directory that can be written; set one by --plugin-cache-directory)");
    }

    /** The device fails every write for want of space, as a full disk does. */
    @Test
    void saysWhatToDoWhenTheDiskIsFullAndLeavesNothing() throws IOException {
        artifact("one");

        assertThatThrownBy(() -> find(new RecordingDisk(Path.of("/dev/full"))))
                .isInstanceOf(IOException.class)
                .hasMessage("its library cannot be unpacked: No space left on device (expected: 700 MB free in a"
                        + " directory that can be written; set one by --plugin-cache-directory)");
        assertThat(cache).isEmptyDirectory();
        assertThat(find()).hasContent("one"); // there is space again
    }

    /** After a crash of the machine a directory of that name is whole. */
    @Test
    void isOnTheDiskBeforeItAppears() throws IOException {
        artifact("one");
        RecordingDisk disk = new RecordingDisk(null);

        String name = find(disk).getParent().getFileName().toString();

        assertThat(disk.calls)
                .containsExactly(
                        "write libtensorflow_cc.so.2",
                        "write libtensorflow_framework.so.2",
                        "sync .tensorflow-…",
                        "move .tensorflow-… to " + name,
                        "sync cache");
    }

    /** Writes, and records in which order; every file to a device if there is one. */
    private static final class RecordingDisk implements Disk {
        private final List<String> calls = new ArrayList<>();
        private final @Nullable Path device;

        RecordingDisk(@Nullable Path device) {
            this.device = device;
        }

        @Override
        public void write(InputStream content, Path file) throws IOException {
            calls.add("write " + file.getFileName());
            if (device == null) {
                Disk.SYSTEM.write(content, file);
            } else {
                try (OutputStream out = Files.newOutputStream(device)) {
                    content.transferTo(out);
                }
            }
        }

        @Override
        public void sync(Path synced) throws IOException {
            calls.add("sync " + name(synced));
            Disk.SYSTEM.sync(synced);
        }

        @Override
        public void move(Path from, Path target) throws IOException {
            calls.add("move " + name(from) + " to " + name(target));
            Disk.SYSTEM.move(from, target);
        }

        private static String name(Path path) {
            return path.getFileName().toString().replaceFirst("(\\.tensorflow-).*", "$1…");
        }
    }

    @Test
    void refusesAnArtifactThatIsNoJar() throws IOException {
        Files.writeString(artifact("one"), "no jar");

        assertThatThrownBy(this::find).hasMessage("tensorflow-core-native.jar: damaged (expected: a jar)");
    }

    @Test
    void removesOtherVersionsThatNoProcessHasMapped() throws IOException {
        artifact("one");
        Path first = find();
        artifact("two");
        Path second;
        try (Arena arena = Arena.ofShared();
                FileChannel library = FileChannel.open(first)) {
            library.map(FileChannel.MapMode.READ_ONLY, 0, library.size(), arena);
            second = find();
            assertThat(second).isNotEqualTo(first).hasContent("two");
            assertThat(first).hasContent("one");
        }
        artifact("three");

        assertThat(find()).hasContent("three");
        assertThat(first.getParent()).doesNotExist();
        assertThat(second.getParent()).doesNotExist();
    }

    @Test
    void removesWhatIsLeftOfAnInterruptedUnpackingAndNothingElse() throws IOException {
        artifact("one");
        Path left = Files.createDirectories(cache.resolve(".tensorflow-left"));
        Files.writeString(left.resolve("libtensorflow_cc.so.2"), "o");
        Path unfinished = Files.createDirectory(cache.resolve(".tensorflow-of-another-process"));
        Path other = Files.createDirectory(cache.resolve("tensorflow-models"));
        for (Path old : List.of(left, other)) {
            Files.setLastModifiedTime(old, FileTime.from(Instant.now().minus(Duration.ofHours(2))));
        }

        assertThat(find()).hasContent("one");

        assertThat(left).doesNotExist();
        assertThat(unfinished).exists();
        assertThat(other).exists();
    }

    @Test
    void removesNothingWhenNothingIsUnpacked() throws IOException {
        artifact("one");
        find();
        Path other = Files.createDirectory(cache.resolve("tensorflow-01234567-89"));

        find();

        assertThat(other).exists();
    }

    @Test
    void usesTheMappedCopyOfAnEarlierPluginWhereItLies() throws IOException {
        artifact("one");
        Path ofEarlierPlugin = find();
        cache = directory.resolve("cache of the next plugin");

        assertThat(find(ofEarlierPlugin)).isEqualTo(ofEarlierPlugin);
        assertThat(cache).doesNotExist();
    }

    @Test
    void usesAMappedCopyOfAnotherOwnerIfItIsTheSame() throws IOException {
        artifact("one");
        Path elsewhere = Files.createDirectory(directory.resolve("javacpp"));
        Files.writeString(elsewhere.resolve("libtensorflow_framework.so.2"), "framework of one");
        Path library = Files.writeString(elsewhere.resolve("libtensorflow_cc.so.2"), "one");

        assertThat(find(library)).isEqualTo(library);

        Files.writeString(elsewhere.resolve("libtensorflow_framework.so.2"), "framework of two");
        assertThatThrownBy(() -> find(library)).isInstanceOf(IllegalStateException.class);
    }

    /** A second copy in one process would abort it. */
    @Test
    void refusesAnotherTensorFlowThanTheMappedOne() throws IOException {
        artifact("one");
        Path mapped = find();
        artifact("two");

        assertThatThrownBy(() -> find(mapped))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageMatching("another TensorFlow is loaded in this process, from tensorflow-\\S+ \\(expected:"
                        + " tensorflow-\\S+\\): restart the server to use this one");
    }

    @Test
    void namesTheArtifactThatIsMissing() {
        assertThatThrownBy(this::find)
                .isInstanceOf(IOException.class)
                .hasMessage("libtensorflow_cc.so.2: missing (expected: tensorflow-core-native-…-linux-x86_64.jar in the"
                        + " directory natives of the plugin)");
    }

    @Test
    void findsAJarThatTheClassLoaderHas() throws IOException {
        Path own = Files.move(artifact("one"), plugin.resolve("own jar.jar"));
        try (URLClassLoader classes = new URLClassLoader(new URL[] {own.toUri().toURL()}, null)) {
            LibraryArchive archive = LibraryArchive.find(plugin, classes, List.of(SOURCE));

            assertThat(LibraryDirectory.find(PRODUCT, archive, cache).resolve(LIBRARY))
                    .hasContent("one");
        }
    }

    @Test
    void prefersTheFirstDirectoryOfAJar() throws IOException {
        Path jar = Files.createDirectories(plugin.resolve("natives")).resolve("both.jar");
        try (OutputStream out = Files.newOutputStream(jar);
                ZipOutputStream zip = new ZipOutputStream(out)) {
            write(zip, LIBRARY, "of the CPU");
            zip.putNextEntry(new ZipEntry(GPU + LIBRARY));
            zip.write("of the GPU".getBytes(StandardCharsets.UTF_8));
            zip.closeEntry();
        }

        assertThat(find()).hasContent("of the GPU");
    }

    @Test
    void refusesADamagedArtifact() throws IOException {
        Path jar = artifact("a content that does not become shorter".repeat(1));
        byte[] bytes = Files.readAllBytes(jar);
        int place = indexOf(bytes, (PREFIX + "libtensorflow_cc.so.2").getBytes(StandardCharsets.UTF_8)) + 90;
        try (RandomAccessFile file = new RandomAccessFile(jar.toFile(), "rw")) {
            file.seek(place);
            file.write(bytes[place] ^ 0x55);
        }

        assertThatThrownBy(this::find)
                .isInstanceOf(IOException.class)
                .hasMessage("tensorflow-core-native.jar: damaged (expected: a jar)");
        assertThat(cache).isEmptyDirectory();
    }

    private static int indexOf(byte[] bytes, byte[] part) {
        return new String(bytes, StandardCharsets.ISO_8859_1).indexOf(new String(part, StandardCharsets.ISO_8859_1));
    }

    private static List<Path> filesBelow(Path directory) throws IOException {
        if (!Files.exists(directory)) {
            return List.of();
        }
        try (Stream<Path> files = Files.walk(directory)) {
            return files.filter(Files::isRegularFile).toList();
        }
    }

    @Test
    void findsWhatIsMapped() throws IOException {
        Path maps = Files.writeString(directory.resolve("maps"), """
                7f0000000000-7f0000001000 r--p 00000000 fe:00 123 /a b/libtensorflow_cc.so.2
                7f0000001000-7f0000002000 r-xp 00001000 fe:00 123 /a b/libtensorflow_cc.so.2
                7f0000002000-7f0000003000 rw-p 00000000 00:00 0
                7f0000003000-7f0000004000 rw-p 00000000 00:00 0 [heap]
                7f0000004000-7f0000005000 r--p 00000000 fe:00 9 /old/libtensorflow_cc.so.2 (deleted)
                7f0000005000-7f0000006000 r--p 00000000 fe:00 9 /old/libtensorflow_framework.so.2
                7f0000006000-7f0000007000 r--p 00000000 fe:00 9 /no\0path
                """);

        assertThat(LoadedLibraries.named("libtensorflow_cc.so.2", maps))
                .containsExactly(Path.of("/a b/libtensorflow_cc.so.2"), Path.of("/old/libtensorflow_cc.so.2"));
    }
}
