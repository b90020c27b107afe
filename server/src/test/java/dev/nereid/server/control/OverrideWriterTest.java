package dev.nereid.server.control;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferenceException;
import dev.nereid.repository.files.PrivateDirectory;
import dev.nereid.spi.ErrorCode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.FileSystemException;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The limits of files that clients send, and what clients learn of those that cannot be written. */
final class OverrideWriterTest {
    @TempDir
    private Path parent;

    @Test
    void limitsTheFilesOfClients() throws IOException {
        try (PrivateDirectory directory = new PrivateDirectory(parent, "overrides-")) {
            OverrideWriter writer = new OverrideWriter(directory, 100);
            ModelSource.ModelFiles first = writer.write("m", Map.of("1/a", ByteBuffer.allocate(60)));

            assertThatThrownBy(() -> writer.write("n", Map.of("1/a", ByteBuffer.allocate(41))))
                    .isInstanceOfSatisfying(
                            InferenceException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INTERNAL))
                    .hasMessage("failed to load 'n', failed to poll from model repository: file override: 41 bytes"
                            + " (expected: at most 100 for all loaded models)");
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
                    .isInstanceOfSatisfying(
                            InferenceException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INTERNAL))
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

    @Test
    void saysThatThereIsNoSpace() {
        assertThat(OverrideWriter.cause(new IOException("No space left on device")))
                .isEqualTo("no space left for them");
        assertThat(OverrideWriter.cause(new FileSystemException("/work/1", null, "No space left on device")))
                .isEqualTo("no space left for them");
        assertThat(OverrideWriter.cause(new FileSystemException("/work/1", null, "Is a directory")))
                .isEqualTo("FileSystemException");
    }
}
