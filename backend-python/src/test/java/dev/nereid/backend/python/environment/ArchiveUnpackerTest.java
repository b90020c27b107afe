package dev.nereid.backend.python.environment;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class ArchiveUnpackerTest {
    @TempDir
    Path directory;

    private Path root;

    @BeforeEach
    void createRoot() throws IOException {
        root = Files.createDirectory(directory.resolve("root"));
    }

    @Test
    void keepsModesTimesAndLinks() throws IOException {
        unpack(new TarArchive()
                .directory("./", 0700)
                .directory("./bin", 0555)
                .file("./bin/python3.11", "program", 0755)
                .symbolicLink("bin/python3", "python3.11")
                .symbolicLink("bin/other", "/usr/bin/python3")
                .hardLink("bin/copy", "./bin/python3.11")
                .file("made/parents/f", "x", 0040));

        assertThat(root.resolve("bin/python3")).hasContent("program").isSymbolicLink();
        assertThat(Files.readSymbolicLink(root.resolve("bin/other"))).hasToString("/usr/bin/python3");
        assertThat(Files.getAttribute(root.resolve("bin/copy"), "unix:nlink")).isEqualTo(2);
        assertThat(mode(root.resolve("bin"))).isEqualTo("rwxr-xr-x");
        assertThat(mode(root.resolve("bin/python3.11"))).isEqualTo("rwxr-xr-x");
        assertThat(mode(root.resolve("made/parents/f"))).isEqualTo("r--r-----");
        // Byte code in the archive is valid for the time of its source.
        assertThat(Files.getLastModifiedTime(root.resolve("bin/python3.11")).to(TimeUnit.SECONDS))
                .isEqualTo(TarArchive.MODIFIED);
    }

    @Test
    void setsNoBitsOfOtherUsers() throws IOException {
        unpack(new TarArchive().file("f", "x", 06755));

        assertThat((Integer) Files.getAttribute(root.resolve("f"), "unix:mode") & 07777)
                .isEqualTo(0755);
    }

    @Test
    void takesTheLastOfEqualNames() throws IOException {
        unpack(new TarArchive().file("f", "1").symbolicLink("f", "elsewhere").file("f", "2"));

        assertThat(root.resolve("f")).hasContent("2").isRegularFile();
    }

    @Test
    void refusesPathsOutsideOfTheDirectory() {
        refused(new TarArchive().file("../f", "x"), "Path contains '..'");
        refused(new TarArchive().file("a/../../f", "x"), "Path contains '..'");
        refused(new TarArchive().directory("a/..", 0755), "Path contains '..'");
        refused(new TarArchive().file("/tmp/f", "x"), "Path is absolute");
        refused(new TarArchive().symbolicLink("../l", "x"), "Path contains '..'");
        refused(new TarArchive().file("f", "x").hardLink("l", "../f"), "Path contains '..'");
        refused(new TarArchive().file("f", "x").hardLink("l", "/etc/passwd"), "Path is absolute");
        refused(new TarArchive().pax('x', "path=a\0b").file("f", "x"), "character 0");
        assertThat(directory.resolve("f")).doesNotExist();
    }

    @Test
    void writesNothingThroughALink() throws IOException {
        Path outside = Files.createDirectory(directory.resolve("outside"));
        Files.writeString(outside.resolve("f"), "before");

        refused(new TarArchive().symbolicLink("l", outside.toString()).file("l/f", "x"), "through symlink");
        refused(new TarArchive().symbolicLink("k", "../outside").directory("k/d", 0755), "through symlink");
        refused(new TarArchive().symbolicLink("m", "../outside").directory("m", 0755), "through symlink");
        refused(new TarArchive().symbolicLink("n", "../outside").hardLink("o", "n/f"), "through symlink");
        unpack(new TarArchive()
                .symbolicLink("p", outside.resolve("f").toString())
                .file("p", "own"));

        assertThat(outside.resolve("f")).hasContent("before");
        assertThat(outside).isDirectoryNotContaining("glob:**/d");
        assertThat(root.resolve("p")).hasContent("own");
    }

    @ParameterizedTest
    @ValueSource(chars = {'3', '4', '6', 'S'})
    void refusesDevicesAndPipes(char type) {
        refused(new TarArchive().header("dev", type, 0, 0666, ""), "'dev' is a device, a pipe");
        assertThat(root.resolve("dev")).doesNotExist();
    }

    @Test
    void refusesEntriesThatContradictEachOther() {
        refused(new TarArchive().directory("a", 0755).file("a", "x"), "a directory and something else");
        refused(new TarArchive().file("b", "x").file("b/c", "x"), "below a file");
        refused(new TarArchive().hardLink("c", "later").file("later", "x"), "does not have before it");
        refused(new TarArchive().file(".", "x"), "without a name");
    }

    @Test
    void refusesMoreThanTheDiskHas() {
        TarArchive claims = new TarArchive().header("huge", '0', 1L << 33, 0644, "");
        assertThatThrownBy(() -> unpacker(1L << 32).unpack(new ByteArrayInputStream(claims.unfinished())))
                .isInstanceOf(ArchiveException.class)
                .hasMessageContaining("no space left for 8589934592 bytes");
        assertThat(root.resolve("huge")).doesNotExist();
    }

    @Test
    void stopsWhenTheDiskFillsMeanwhile() {
        AtomicLong asked = new AtomicLong();
        ArchiveUnpacker unpacker = new ArchiveUnpacker(
                root, () -> asked.incrementAndGet() < 3 ? Long.MAX_VALUE : ArchiveUnpacker.RESERVE - 1, () -> false);
        TarArchive large = new TarArchive();
        for (int i = 0; i < 40; i++) {
            large.header("f" + i, '0', 1 << 20, 0644, "").data(new byte[1 << 20]);
        }

        assertThatThrownBy(() -> unpacker.unpack(new ByteArrayInputStream(large.tar())))
                .hasMessageContaining("no space left");
    }

    @Test
    void endsEarlyWhenItIsCancelled() {
        ArchiveUnpacker unpacker = new ArchiveUnpacker(root, () -> Long.MAX_VALUE, () -> true);

        assertThatThrownBy(() -> unpacker.unpack(
                        new ByteArrayInputStream(new TarArchive().file("f", "x").tar())))
                .hasMessageContaining("closed");
    }

    @Test
    void namesTheFormatOfOtherArchives() throws IOException {
        for (String start :
                new String[] {"BZh91AY&SY", "\u00fd7zXZ\0\0\0", "PK\u0003\u0004....", "(\u00b5/\u00fd...."}) {
            byte[] bytes = start.getBytes(java.nio.charset.StandardCharsets.ISO_8859_1);
            assertThatThrownBy(() -> unpacker(Long.MAX_VALUE).unpack(new ByteArrayInputStream(bytes)))
                    .hasMessageContaining("compressed by")
                    .hasMessageContaining("expected: a tar archive compressed by gzip");
        }
    }

    @Test
    void noticesATruncatedArchive() throws IOException {
        Path file = new TarArchive().file("f", "x".repeat(100_000)).gzip(directory.resolve("a.tar.gz"));
        byte[] bytes = Files.readAllBytes(file);

        for (int length = 20; length < bytes.length; length += 7) {
            byte[] part = java.util.Arrays.copyOf(bytes, length);
            assertThatThrownBy(() -> unpacker(Long.MAX_VALUE).unpack(new ByteArrayInputStream(part)))
                    .isInstanceOf(IOException.class);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"gnu", "pax", "ustar", "v7"})
    void readsArchivesOfTheTarProgram(String format) throws Exception {
        assumeTrue(Files.isExecutable(Path.of("/usr/bin/tar")) || Files.isExecutable(Path.of("/bin/tar")), "needs tar");
        Path source = Files.createDirectories(directory.resolve("source"));
        boolean hasLongLinks = format.equals("gnu") || format.equals("pax");
        String deep = hasLongLinks ? "d".repeat(60) + "/" + "e".repeat(60) : "d";
        Files.createDirectories(source.resolve(deep));
        Files.writeString(source.resolve(deep).resolve("file"), "content");
        Files.setPosixFilePermissions(
                source.resolve(deep).resolve("file"), PosixFilePermissions.fromString("rwxr-x---"));
        Files.createLink(source.resolve("hard"), source.resolve(deep).resolve("file"));
        Files.createSymbolicLink(source.resolve("soft"), Path.of(deep, "file"));
        Path archive = directory.resolve("a.tar.gz");
        Process tar = new ProcessBuilder(
                        "tar", "--format=" + format, "-czf", archive.toString(), "-C", source.toString(), ".")
                .inheritIO()
                .start();
        assertThat(tar.waitFor()).isZero();

        try (InputStream in = Files.newInputStream(archive)) {
            unpacker(Long.MAX_VALUE).unpack(in);
        }

        assertThat(root.resolve("soft")).hasContent("content").isSymbolicLink();
        assertThat(root.resolve("hard")).hasContent("content");
        assertThat(mode(root.resolve(deep).resolve("file"))).isEqualTo("rwxr-x---");
        assertThat(Files.getLastModifiedTime(root.resolve(deep).resolve("file")).to(TimeUnit.SECONDS))
                .isEqualTo(Files.getLastModifiedTime(source.resolve(deep).resolve("file"))
                        .to(TimeUnit.SECONDS));
    }

    private void unpack(TarArchive archive) throws IOException {
        Path file = archive.gzip(directory.resolve("archive"));
        try (InputStream in = Files.newInputStream(file)) {
            unpacker(Long.MAX_VALUE).unpack(in);
        }
    }

    private void refused(TarArchive archive, String text) {
        assertThatThrownBy(() -> unpack(archive))
                .isInstanceOf(ArchiveException.class)
                .hasMessageContaining(text);
    }

    private ArchiveUnpacker unpacker(long space) {
        return new ArchiveUnpacker(root, () -> space, () -> false);
    }

    private static String mode(Path file) throws IOException {
        return PosixFilePermissions.toString(Files.getPosixFilePermissions(file));
    }
}
