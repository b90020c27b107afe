package dev.nereid.backend.python.death;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.ModelRef;
import dev.nereid.api.statistics.ModelStatistics;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Kills processes of models at random moments while clients send. {@code -Dpython.kills=1000} sets the number of kills, {@code
 * -Dpython.load-seconds=1200} the time of the load without kills.
 */
@Timeout(value = 2, unit = TimeUnit.HOURS)
final class KillsUnderLoadIT {
    private static final int KILLS = Integer.getInteger("python.kills", 30);
    private static final int SECONDS = Integer.getInteger("python.load-seconds", 5);
    private static final int CLIENTS = 8;

    @TempDir
    private Path directory;

    private final String temporary = System.getProperty("java.io.tmpdir");

    /** The directory of sockets is that of this test alone. */
    @BeforeEach
    void setTemporaryDirectory() {
        System.setProperty("java.io.tmpdir", directory.toString());
    }

    @AfterEach
    void restoreTemporaryDirectory() {
        System.setProperty("java.io.tmpdir", temporary);
    }

    @Test
    void noRequestIsLostOrAnsweredTwiceOrWrongly() throws InterruptedException {
        long seed = Long.getLong("python.seed", System.nanoTime());
        Random random = new Random(seed);
        long self = ProcessHandle.current().pid();
        int kills = 0;
        String figures;
        long begin = System.nanoTime();
        try (PythonServer server = Load.models(PythonServer.in(directory))
                .setting("restart-delay", "0")
                .start()) {
            Load load = Load.start(server, CLIENTS);
            while (kills < KILLS) {
                List<Long> processes = Processes.ofModels(self);
                if (!processes.isEmpty()) {
                    PythonServer.kill(processes.get(random.nextInt(processes.size())), "KILL");
                    kills++;
                }
                LockSupport.parkNanos(random.nextInt(200_000_000));
            }
            figures = load.stop();
            for (String model : Load.MODELS) {
                if (!model.equals("stream")) {
                    server.awaitService(model);
                }
            }
            checkStatistics(server, load);
        }
        System.err.println(kills + " kills in "
                + Duration.ofNanos(System.nanoTime() - begin).toSeconds() + " s (seed " + seed + "): " + figures);
        checkNothingIsLeft(self);
    }

    private static void checkStatistics(PythonServer server, Load load) {
        for (String model : List.of("pair", "stream", "caller")) {
            long asked = model.equals("stream") ? 0 : 1; // by awaitService, the last one of which has succeeded
            ModelStatistics statistics = server.server()
                    .server()
                    .models()
                    .statistics(ModelRef.latest(model))
                    .getFirst();
            long succeeded = statistics.inferences().success().count();
            long failed = statistics.inferences().fail().count();
            assertThat(succeeded).as("successes of %s", model).isEqualTo(load.succeeded(model) + asked);
            assertThat(failed).as("failures of %s", model).isGreaterThanOrEqualTo(load.failed(model));
        }
    }

    private static void checkNothingIsLeft(long self) {
        PythonServer.await(() -> Processes.ofModels(self).isEmpty());
        assertThat(PythonServer.socketDirectories()).isEmpty();
        assertThat(Processes.descriptors()).noneMatch(one -> one.contains("memfd"));
        PythonServer.await(() -> Thread.getAllStackTraces().keySet().stream()
                .noneMatch(thread -> thread.getName().startsWith("python ")));
    }

    @Test
    void memoryStaysUnderLoad() throws InterruptedException {
        long self = ProcessHandle.current().pid();
        try (PythonServer server = Load.models(PythonServer.in(directory)).start()) {
            Load load = Load.start(server, CLIENTS);
            long begin = System.nanoTime();
            long next = 0;
            while (System.nanoTime() - begin < TimeUnit.SECONDS.toNanos(SECONDS)) {
                long elapsed = TimeUnit.NANOSECONDS.toSeconds(System.nanoTime() - begin);
                if (elapsed >= next) {
                    next += Math.max(1, SECONDS / 10);
                    System.err.println(figures(self, elapsed, load));
                }
                LockSupport.parkNanos(100_000_000);
            }
            System.err.println(load.stop());
            System.err.println(figures(self, SECONDS, load));
        }
        checkNothingIsLeft(self);
    }

    private static String figures(long self, long elapsed, Load load) {
        System.gc();
        Runtime runtime = Runtime.getRuntime();
        StringBuilder text = new StringBuilder(elapsed + " s: " + load.total() + " requests, heap "
                + ((runtime.totalMemory() - runtime.freeMemory()) >> 20) + " MiB, server "
                + (Processes.resident(self) >> 10)
                + " MiB, descriptors " + Processes.descriptors().size() + ", threads "
                + Thread.getAllStackTraces().size() + ", processes");
        Processes.ofModels(self).forEach(process -> text.append(' ').append(Processes.resident(process) >> 10));
        return text.append(" MiB").toString();
    }
}
