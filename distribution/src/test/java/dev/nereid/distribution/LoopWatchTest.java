package dev.nereid.distribution;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.server.repository.ExecutingInstance;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;

/** Event loops that stand still. */
final class LoopWatchTest {
    private final List<Runnable> tasks = new ArrayList<>();
    private final LoopWatch watch =
            new LoopWatch(List.of(tasks::add), thread -> Optional.of(new ExecutingInstance("m", 1, "m_0")));
    private long now;

    @Test
    void areReportedOnceWithTheModel() {
        String log = logOf(() -> {
            look(1);
            runAll();
            for (int i = 0; i < 10; i++) {
                look(LoopWatch.LIMIT_NANOS);
            }
        });

        assertThat(log.lines().filter(line -> line.contains("event loop stands still")))
                .singleElement()
                .asString()
                .contains(
                        "model=m",
                        "version=1",
                        "instance=m_0",
                        Thread.currentThread().getName());
        assertThat(tasks).as("given to the loop and not done").hasSize(1);
    }

    @Test
    void areReportedAgainIfTheyStandStillAgain() {
        String log = logOf(() -> {
            look(1);
            runAll();
            for (int i = 0; i < 3; i++) {
                look(1);
                look(LoopWatch.LIMIT_NANOS);
                runAll();
            }
        });

        assertThat(log.lines().filter(line -> line.contains("event loop stands still")))
                .hasSize(3);
    }

    @Test
    void areNotReportedIfTheyAnswer() {
        String log = logOf(() -> {
            for (int i = 0; i < 10; i++) {
                look(LoopWatch.LIMIT_NANOS);
                runAll();
            }
        });

        assertThat(log).isEmpty();
    }

    private void look(long later) {
        now += later;
        watch.check(now);
    }

    private void runAll() {
        tasks.forEach(Runnable::run);
        tasks.clear();
    }

    private static String logOf(Runnable action) {
        ByteArrayOutputStream log = new ByteArrayOutputStream();
        PrintStream before = System.err;
        try (PrintStream kept = new PrintStream(log, true, UTF_8)) {
            System.setErr(kept);
            action.run();
        } finally {
            System.setErr(before);
        }
        return log.toString(UTF_8);
    }
}
