package dev.nereid.backend.python.death;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Tests that shared memory of a process that has become idle is unmapped. */
@Timeout(120)
final class IdleMemoryIT {
    @TempDir
    private Path directory;

    @Test
    void sharedMemoryIsUnmappedWhenItIsIdle() {
        try (PythonServer server = PythonServer.in(directory).model("m").start()) {
            for (int round = 0; round < 2; round++) {
                assertThat(server.ask("m", "", new long[1 << 20])).hasSize(1 << 20);
                assertThat(Processes.descriptors()).anyMatch(one -> one.contains("memfd"));

                PythonServer.await(() -> Processes.descriptors().stream().noneMatch(one -> one.contains("memfd")));
            }
        }
    }
}
