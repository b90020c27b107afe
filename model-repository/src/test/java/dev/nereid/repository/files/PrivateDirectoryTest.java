package dev.nereid.repository.files;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Instant;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A directory of a server, also after one that was killed. */
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
        Path withoutLock = Files.createDirectory(parent.resolve(PREFIX + "2"));
        Path other = Files.createDirectory(parent.resolve("something-else"));
        Path lockAlone = Files.createFile(parent.resolve(PREFIX + "3.lock"));
        Files.setLastModifiedTime(lockAlone, FileTime.from(Instant.EPOCH));
        Path starting = Files.createFile(parent.resolve(PREFIX + "4.lock"));

        try (PrivateDirectory next = new PrivateDirectory(parent, PREFIX)) {
            assertThat(left).doesNotExist();
            assertThat(parent.resolve(PREFIX + "1.lock")).doesNotExist();
            assertThat(withoutLock).as("no directory of a server").exists();
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
}
