package dev.nereid.repository.storage;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Servers that share the directory of copies of one repository. */
@Tag("slow")
@Timeout(60)
final class CopiesDirectoryTest {
    private static final String URL = "s3://bucket/models";

    /** Prints whether another process has locked a file. */
    private static final String PROBE = """
            import java.nio.channels.FileChannel;
            import java.nio.file.*;

            void main(String[] arguments) throws Exception {
                try (var file = FileChannel.open(Path.of(arguments[0]), StandardOpenOption.WRITE)) {
                    IO.print(file.tryLock() == null ? "locked" : "free");
                }
            }
            """;

    @TempDir
    private Path base;

    private CopiesDirectory open() throws IOException {
        return CopiesDirectory.open(base.resolve("copies"), URL, new LocalFiles.Disk());
    }

    private String probe(CopiesDirectory directory) throws Exception {
        Path source = Files.writeString(base.resolve("Probe.java"), PROBE);
        Process process = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        source.toString(),
                        directory.path().resolve("lock").toString())
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(process.waitFor()).isZero();
        return output;
    }

    /** A server that finds a directory in use does not release the lock of the other, which belongs to the process. */
    @Test
    void givesEachServerOfAProcessItsOwnDirectory() throws Exception {
        CopiesDirectory first = open();
        try (CopiesDirectory second = open()) {
            assertThat(second.path()).isNotEqualTo(first.path());
            assertThat(probe(first)).isEqualTo("locked");
            assertThat(probe(second)).isEqualTo("locked");

            first.close();

            assertThat(probe(first)).isEqualTo("free");
            try (CopiesDirectory third = open()) {
                assertThat(third.path()).isEqualTo(first.path());
                assertThat(probe(third)).isEqualTo("locked");
            }
        }
    }

    /** As a server of another class loader does, whose locks this one does not know. */
    @Test
    void leavesALockOfTheProcessThatItDoesNotKnow() throws Exception {
        CopiesDirectory first = open();
        first.close();
        try (FileChannel other = FileChannel.open(first.path().resolve("lock"), StandardOpenOption.WRITE)) {
            assertThat(other.tryLock()).isNotNull();
            for (int i = 0; i < 2; i++) {
                try (CopiesDirectory second = open()) {
                    assertThat(second.path()).isNotEqualTo(first.path());
                }
            }
            assertThat(probe(first)).isEqualTo("locked");
        }
        try (CopiesDirectory third = open()) {
            assertThat(third.path()).isEqualTo(first.path());
            assertThat(probe(third)).isEqualTo("locked");
        }
    }
}
