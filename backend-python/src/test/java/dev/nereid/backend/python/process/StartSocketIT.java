package dev.nereid.backend.python.process;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.nereid.backend.python.posix.SocketCalls;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class StartSocketIT {
    private static final String CONNECT = """
            import os, socket, sys
            os.setuid(int(sys.argv[2]))
            connection = socket.socket(socket.AF_UNIX)
            connection.connect("\\0" + sys.argv[1][1:])
            print(connection.recv(1) == b"")
            """;

    private static Process connect(StartSocket socket, long user) throws IOException {
        return new ProcessBuilder("python3", "-c", CONNECT, socket.address(), Long.toString(user)).start();
    }

    private static int accept(StartSocket socket, Process process) throws IOException {
        while (true) {
            int connection = socket.accept(100);
            if (connection >= 0 || !process.isAlive()) {
                return connection;
            }
        }
    }

    @Test
    void acceptsProcessesOfItsUser() throws Exception {
        try (StartSocket socket = StartSocket.open()) {
            Process process = connect(socket, user());
            int connection = accept(socket, process);

            assertThat(connection).isNotNegative();
            SocketCalls.close(connection);
            assertThat(process.waitFor(30, TimeUnit.SECONDS)).isTrue();
            assertThat(process.exitValue()).isZero();
        }
    }

    @Test
    void closesConnectionsOfOtherUsers() throws Exception {
        assumeTrue(user() == 0, "skipped: not root (expected: root, who can be another user)");
        try (StartSocket socket = StartSocket.open()) {
            Process process = connect(socket, 12_345);

            assertThat(accept(socket, process)).isNegative();
            assertThat(process.waitFor(30, TimeUnit.SECONDS)).isTrue();
            assertThat(new String(process.getInputStream().readAllBytes(), UTF_8))
                    .isEqualToIgnoringNewLines("True");
        }
    }

    @Test
    void hasAnotherNameEachTime() throws Exception {
        try (StartSocket first = StartSocket.open();
                StartSocket second = StartSocket.open()) {
            assertThat(first.address()).startsWith("@nereid-python-").isNotEqualTo(second.address());
            assertThat(Files.readString(Path.of("/proc/net/unix"))).contains(first.address(), second.address());
        }
    }

    private static int user() throws IOException {
        return (int) Files.getAttribute(Path.of("/proc/self"), "unix:uid");
    }
}
