package dev.nereid.server.control;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.FileSystemException;
import org.junit.jupiter.api.Test;

/** What clients learn of files that cannot be written. */
final class OverrideWriterTest {
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
