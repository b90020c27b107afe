package dev.nereid.server.control;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferenceException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Instant;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The directory of files that clients send, also after a server that was killed, and the limits of its files. */
final class PrivateDirectoryTest {
    private static final String PREFIX = "overrides-";

    @TempDir
    private Path parent;

    @Test
    void belongsToItsUserAlone() throws IOException {
        PrivateDirectory directory = new PrivateDirectory(parent.resolve("new/work"), PREFIX);
        assertThat(parent).isEmptyDirectory();

        Path created = directory.create();

        assertThat(created).isEqualTo(directory.create()).isEmptyDirectory();
        assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(created)))
                .isEqualTo("rwx------");
        Files.createDirectories(created.resolve("1/m/1"));
        Files.createSymbolicLink(created.resolve("1/m/link"), Files.writeString(parent.resolve("outside"), "x"));
        directory.close();
        directory.close();
        assertThat(parent.resolve("new/work")).isEmptyDirectory();
        assertThat(parent.resolve("outside")).exists();
    }

    /** The lock of a killed process is released; that of a running one is not. */
    @Test
    void removesWhatAKilledServerLeft() throws IOException {
        PrivateDirectory running = new PrivateDirectory(parent, PREFIX);
        Path used = running.create();
        Path left = Files.createDirectories(parent.resolve(PREFIX + "1/1/m"))
                .getParent()
                .getParent();
        Files.createFile(parent.resolve(PREFIX + "1.lock"));
        Path half = Files.createDirectory(parent.resolve(PREFIX + "2"));
        Path other = Files.createDirectory(parent.resolve("something-else"));
        Path lockAlone = Files.createFile(parent.resolve(PREFIX + "3.lock"));
        Files.setLastModifiedTime(lockAlone, FileTime.from(Instant.EPOCH));
        Path starting = Files.createFile(parent.resolve(PREFIX + "4.lock"));

        try (PrivateDirectory next = new PrivateDirectory(parent, PREFIX)) {
            assertThat(left).doesNotExist();
            assertThat(parent.resolve(PREFIX + "1.lock")).doesNotExist();
            assertThat(half).doesNotExist();
            assertThat(lockAlone).doesNotExist();
            assertThat(starting).as("of a server that is about to lock it").exists();
            assertThat(other).exists();
            assertThat(used).exists();
            assertThat(next.create()).isNotEqualTo(used);
        }
        assertThat(used).exists();
        running.close();
        assertThat(used).doesNotExist();
    }

    @Test
    void limitsTheFilesOfClients() throws IOException {
        try (PrivateDirectory directory = new PrivateDirectory(parent, PREFIX)) {
            OverrideWriter writer = new OverrideWriter(directory, 100);
            ModelFiles first = writer.write("m", Map.of("1/a", ByteBuffer.allocate(60)));

            assertThatThrownBy(() -> writer.write("n", Map.of("1/a", ByteBuffer.allocate(41))))
                    .isInstanceOf(InferenceException.class)
                    .hasMessage("failed to load 'n', failed to poll from model repository: file override: 41 bytes"
                            + " (expected: at most 100 for all loaded"
                            + " models)");
            first.retain();
            first.release();
            assertThat(first.directory().path().resolve("1/a")).hasSize(60);
            first.release();
            assertThat(directory.create()).isEmptyDirectory();
            writer.write("n", Map.of("1/a", ByteBuffer.allocate(100))).release();

            Map<String, ByteBuffer> many = new HashMap<>();
            for (int i = 0; i <= OverrideWriter.MAX_FILES; i++) {
                many.put("1/" + i, ByteBuffer.allocate(0));
            }
            assertThatThrownBy(() -> writer.write("m", many))
                    .hasMessage("failed to load 'm', failed to poll from model repository: file override: 1001 files"
                            + " (expected: at most 1000)");
            assertThatThrownBy(() -> writer.write("m", Map.of("a".repeat(1025), ByteBuffer.allocate(1))))
                    .hasMessageContaining("a path of at most 1024 characters");
            assertThatThrownBy(() -> writer.write("m", Map.of("a".repeat(300), ByteBuffer.allocate(1))))
                    .hasMessageContaining("(expected: names of at most 255 bytes)");
            assertThat(directory.create()).isEmptyDirectory();
            writer.write("m", Map.of("1/a", ByteBuffer.allocate(100))).release();
        }
    }
}
