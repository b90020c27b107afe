package dev.nereid.backend.python.death;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests that nothing is left when a server ends, in whatever way: no process, also of what models have started, no socket and no
 * file but caches. {@code -Dpython.server-kills=100} sets the number of kills.
 */
@Timeout(value = 1, unit = TimeUnit.HOURS)
final class ServerEndIT {
    private static final int KILLS = Integer.getInteger("python.server-kills", 5);
    private static final Duration LIMIT = Duration.ofSeconds(10);

    @TempDir
    private Path directory;

    private Path temporary;
    private Path models;

    @BeforeEach
    void writeModels() throws IOException {
        temporary = Files.createDirectories(directory.resolve("t"));
        models = directory.resolve("models");
        String children = """
                if os.fork() == 0:
                    time.sleep(600)
                    os._exit(0)
                subprocess.Popen(["sh", "-c", "sleep 600; : %s"])
                """.formatted(temporary);
        PythonServer.Builder _ =
                PythonServer.in(models).model("m", "", children, "").model("hanging", "", "", "");
    }

    private Process start(String end, String code) throws IOException {
        List<String> command = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "--enable-native-access=ALL-UNNAMED",
                "-Xmx256m",
                "-XX:TieredStopAtLevel=1",
                "-Djava.io.tmpdir=" + temporary,
                "-cp",
                System.getProperty("java.class.path"),
                EndingServer.class.getName(),
                models.toString(),
                end,
                code));
        return new ProcessBuilder(command)
                .redirectError(directory.resolve("err").toFile())
                .start();
    }

    private static void awaitReady(Process server) throws IOException {
        BufferedReader lines = server.inputReader();
        String line = lines.readLine();
        assertThat(line).isEqualTo("READY");
    }

    /** Waits until nothing is left, for the time that is allowed. */
    private void checkNothingIsLeft(String what) throws IOException {
        long begin = System.nanoTime();
        List<Long> left = Processes.with(temporary.toString());
        while (!left.isEmpty() && System.nanoTime() - begin < LIMIT.toNanos()) {
            LockSupport.parkNanos(20_000_000);
            left = Processes.with(temporary.toString());
        }
        assertThat(left.stream().map(Processes::commandLine)).as(what).isEmpty();
        try (Stream<Path> files = Files.list(temporary)) {
            assertThat(files.filter(file -> file.getFileName().toString().startsWith("nereid-python-")))
                    .as(what)
                    .isEmpty();
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"exit", "halt", "close"})
    void nothingIsLeftOfAServerThatEndsByItself(String end) throws Exception {
        Process server = start(end, end.equals("close") ? "time.sleep(4)" : "time.sleep(600)");
        awaitReady(server);
        assertThat(server.waitFor(60, TimeUnit.SECONDS)).isTrue();
        checkNothingIsLeft(end);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "TERM;time.sleep(2)",
                "KILL;time.sleep(600)",
                "KILL;while True: ctypes.PyDLL(None).sleep(600)",
                "KILL;os.closerange(3, 65536); time.sleep(600)",
                "KILL;os.kill(os.getpid(), signal.SIGSTOP)",
                "SEGV;while True: pass",
            })
    void nothingIsLeftOfAServerThatIsKilled(String how) throws Exception {
        String[] parts = how.split(";", 2);
        Process server = start("stay", parts[1]);
        awaitReady(server);
        LockSupport.parkNanos(500_000_000);
        PythonServer.kill(server.pid(), parts[0]);
        assertThat(server.waitFor(60, TimeUnit.SECONDS)).isTrue();
        checkNothingIsLeft(how);
    }

    @Test
    void nothingIsLeftWheneverAServerIsKilled() throws Exception {
        long seed = Long.getLong("python.seed", System.nanoTime());
        Random random = new Random(seed);
        long begin = System.nanoTime();
        int starting = 0;
        for (int i = 0; i < KILLS; i++) {
            Process server = start("stay", "time.sleep(600)");
            boolean early = random.nextBoolean();
            if (early) {
                LockSupport.parkNanos(random.nextLong(2_000_000_000L));
                starting++;
            } else {
                awaitReady(server);
                LockSupport.parkNanos(random.nextLong(500_000_000L));
            }
            PythonServer.kill(server.pid(), "KILL");
            server.waitFor();
            checkNothingIsLeft("kill " + i + " of seed " + seed);
        }
        System.err.println(KILLS + " kills of the server, " + starting + " of them within 2 s of its start, in "
                + Duration.ofNanos(System.nanoTime() - begin).toSeconds() + " s (seed " + seed + "): nothing left");
    }
}
