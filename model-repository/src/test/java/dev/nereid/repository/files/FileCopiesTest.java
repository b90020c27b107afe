package dev.nereid.repository.files;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.nereid.repository.ModelDirectory;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Private copies of files of models, for backends that map them. */
final class FileCopiesTest {
    @TempDir
    private Path directory;

    private Path cache;
    private Path version;
    private ModelDirectory model;

    @BeforeEach
    void writeModel() throws IOException {
        cache = directory.resolve("cache");
        version = Files.createDirectories(directory.resolve("models/m/1"));
        model = new ModelDirectory(directory.resolve("models"), "m");
        Files.writeString(version.resolve("model.onnx"), "model");
        Files.writeString(Files.createDirectory(version.resolve("data")).resolve("weights.bin"), "weights");
    }

    @Test
    void keepsWhatAFileHadWhenItIsOverwrittenTruncatedOrRemoved() throws Exception {
        try (FileCopies copies = new FileCopies(cache)) {
            assertThat(cache).as("before a copy is needed").doesNotExist();
            VersionFiles files = copies.of(model);
            Path copy = files.copy(version, List.of("model.onnx", "data/weights.bin"));

            Files.writeString(version.resolve("data/weights.bin"), "WEIGHTS");
            Files.writeString(version.resolve("model.onnx"), "");
            assertThat(copy.resolve("data/weights.bin")).hasContent("weights");
            Files.delete(version.resolve("data/weights.bin"));

            assertThat(copy.resolve("data/weights.bin")).hasContent("weights");
            assertThat(copy.resolve("model.onnx")).hasContent("model");
            assertThat(copy).startsWith(cache);
            assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(copy.getParent())))
                    .isEqualTo("rwx------");
            files.close();
            files.close();
            assertThat(copy).doesNotExist();
        }
        assertThat(cache).isEmptyDirectory();
    }

    /** A completion and the load that follows it see the same files. */
    @Test
    void copiesOnceForAVersion() throws Exception {
        try (FileCopies copies = new FileCopies(cache);
                VersionFiles files = copies.of(model);
                VersionFiles others = copies.of(model)) {
            Path copy = files.copy(version, List.of("model.onnx"));
            Files.writeString(version.resolve("model.onnx"), "other");

            assertThat(files.copy(version, List.of("model.onnx"))).isEqualTo(copy);
            assertThat(copy.resolve("model.onnx")).hasContent("model");
            assertThat(others.copy(version, List.of("model.onnx")).resolve("model.onnx"))
                    .hasContent("other");
            assertThat(files.copy(version, List.of())).isEmptyDirectory();
        }
    }

    @Test
    void copiesNoFilesThatTheServerAloneWrites() throws Exception {
        try (FileCopies copies = new FileCopies(cache)) {
            copies.exempt(path -> path.equals(model.path()));
            try (VersionFiles files = copies.of(model)) {
                assertThat(files.copy(version, List.of("model.onnx"))).isEqualTo(version);
                assertRefused(files, version, "no.bin", ErrorCode.NOT_FOUND, "(expected: an existing file)");
            }
        }
        assertThat(cache).doesNotExist();
    }

    @Test
    void removesWhatAKilledServerLeft() throws Exception {
        FileCopies killed = new FileCopies(cache);
        Path left = Files.createDirectories(cache.resolve("mapped-1/1"));
        Files.writeString(left.resolve("weights.bin"), "left");
        Files.createFile(cache.resolve("mapped-1.lock"));
        try (VersionFiles used = killed.of(model)) {
            Path copy = used.copy(version, List.of("model.onnx"));

            new FileCopies(cache).close();

            assertThat(left).doesNotExist();
            assertThat(copy.resolve("model.onnx")).hasContent("model");
        }
        killed.close();
    }

    @Test
    void refusesPathsThatLeaveTheDirectory() throws Exception {
        Files.writeString(directory.resolve("outside"), "outside");
        Files.createSymbolicLink(version.resolve("link"), directory.resolve("outside"));
        Files.createSymbolicLink(version.resolve("inside"), Path.of("data/weights.bin"));
        new ProcessBuilder("mkfifo", version.resolve("pipe").toString()).start().waitFor();
        try (FileCopies copies = new FileCopies(cache);
                VersionFiles files = copies.of(model)) {
            for (String path : List.of("../../../outside", "/etc/passwd", "data/../model.onnx", "", "a\0b", "link")) {
                assertRefused(
                        files, version, path, ErrorCode.INVALID_ARGUMENT, "(expected: a path below its directory");
            }
            for (String path : List.of("pipe", "data")) {
                assertRefused(files, version, path, ErrorCode.INVALID_ARGUMENT, "(expected: a regular file)");
            }
            assertRefused(files, version, "x".repeat(5000), ErrorCode.NOT_FOUND, "(expected: an existing file)");
            assertRefused(files, directory, "outside", ErrorCode.INVALID_ARGUMENT, "or one below it)");
            assertRefused(files, version, "no.bin", ErrorCode.NOT_FOUND, "model file: 'no.bin'");
            assertThat(cache).doesNotExist();

            assertThat(files.copy(version, List.of("inside")).resolve("inside"))
                    .isRegularFile()
                    .hasContent("weights");
        }
    }

    /** Another process may write at any time: a copy is of one content, or refused. */
    @Test
    void refusesAFileThatChangesMeanwhile() throws Exception {
        Path weights = version.resolve("weights.bin");
        AtomicBoolean end = new AtomicBoolean();
        CountDownLatch written = new CountDownLatch(1);
        Thread owner = Thread.ofPlatform().start(() -> {
            byte[] content = new byte[1 << 20];
            for (byte i = 0; !end.get(); i++) {
                Arrays.fill(content, i);
                try (FileChannel file =
                        FileChannel.open(weights, StandardOpenOption.CREATE, StandardOpenOption.WRITE)) {
                    file.truncate(0);
                    file.write(ByteBuffer.wrap(content));
                } catch (IOException e) {
                    throw new UncheckedIOException(e);
                }
                written.countDown();
            }
        });
        written.await();
        boolean refused = false;
        try (FileCopies copies = new FileCopies(cache)) {
            for (int i = 0; i < 10_000 && !refused; i++) {
                try (VersionFiles files = copies.of(model)) {
                    files.copy(version, List.of("weights.bin"));
                } catch (BackendException e) {
                    assertThat(e)
                            .hasMessage("model file 'weights.bin' of model 'm' changed while it was copied (expected:"
                                    + " files that stay as they are during a load): load the model again");
                    assertThat(e.code()).isEqualTo(ErrorCode.UNAVAILABLE);
                    refused = true;
                }
            }
            assertThat(refused).isTrue();
            try (Stream<Path> all = Files.walk(cache)) {
                assertThat(all.filter(path -> path.endsWith("weights.bin"))).isEmpty();
            }
        } finally {
            end.set(true);
            owner.join();
        }
    }

    @Test
    void saysHowMuchSpaceIsMissing() throws Exception {
        try (FileChannel file = FileChannel.open(
                version.resolve("huge.bin"),
                StandardOpenOption.CREATE_NEW,
                StandardOpenOption.WRITE,
                StandardOpenOption.SPARSE)) {
            file.write(ByteBuffer.wrap(new byte[1]), (8L << 40) - 1);
        } catch (IOException e) {
            assumeTrue(false, "no files of 8 TiB here: " + e.getMessage());
        }
        assumeTrue(Files.getFileStore(directory).getUsableSpace() < 8L << 40, "8 TiB are free here");
        try (FileCopies copies = new FileCopies(cache);
                VersionFiles files = copies.of(model)) {
            assertThatExceptionOfType(BackendException.class)
                    .isThrownBy(() -> files.copy(version, List.of("huge.bin")))
                    .withMessage(
                            "private copies of 1 files of model 'm': no space for 8796093022208 bytes (expected: as"
                                    + " much free space in the directory for files of plugins; set another one by"
                                    + " --plugin-cache-directory or NEREID_PLUGIN_CACHE_DIRECTORY)")
                    .extracting(BackendException::code)
                    .isEqualTo(ErrorCode.UNAVAILABLE);
        }
    }

    @Test
    void saysThatTheDirectoryCannotBeWritten() throws Exception {
        Files.writeString(directory.resolve("cache"), "a file");
        try (FileCopies copies = new FileCopies(cache);
                VersionFiles files = copies.of(model)) {
            assertThatExceptionOfType(BackendException.class)
                    .isThrownBy(() -> files.copy(version, List.of("model.onnx")))
                    .withMessageStartingWith("private copies of files of model 'm' cannot be written: ")
                    .withMessageContaining("--plugin-cache-directory or NEREID_PLUGIN_CACHE_DIRECTORY, can be written)")
                    .withMessageNotContaining(directory.toString());
        }
    }

    @Test
    void copiesNothingForAModelThatIsClosed() {
        try (FileCopies copies = new FileCopies(cache)) {
            VersionFiles files = copies.of(model);
            files.close();

            assertRefused(files, version, "model.onnx", ErrorCode.UNAVAILABLE, "the model is closed");
        }
    }

    private static void assertRefused(VersionFiles files, Path from, String path, ErrorCode code, String text) {
        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> files.copy(from, List.of(path)))
                .withMessageContaining(text)
                .extracting(BackendException::code)
                .isEqualTo(code);
    }
}
