package dev.nereid.distribution;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.server.repository.ExecutingInstance;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;

/** Event loops that stand still. */
final class LoopWatchTest {
    private final List<Runnable> tasks = new ArrayList<>();
    private final List<String> reports = new ArrayList<>();
    private final LoopWatch watch = new LoopWatch(
            List.of(tasks::add),
            thread -> Optional.of(new ExecutingInstance("m", 1, "m_0")),
            (thread, instance, elapsed) -> reports.add(thread.getName() + " " + instance.orElseThrow()));
    private long now;

    @Test
    void areReportedOnceWithTheModel() {
        look(1);
        runAll();
        for (int i = 0; i < 10; i++) {
            look(LoopWatch.LIMIT_NANOS);
        }

        ExecutingInstance instance = new ExecutingInstance("m", 1, "m_0");
        assertThat(reports).containsExactly(Thread.currentThread().getName() + " " + instance);
        assertThat(tasks).as("given to the loop and not done").hasSize(1);
    }

    @Test
    void areReportedIfTheyHaveNeverAnswered() {
        runAll(); // given when the watch began
        look(1);
        look(LoopWatch.LIMIT_NANOS);

        assertThat(reports).hasSize(1);
    }

    @Test
    void areReportedAgainIfTheyStandStillAgain() {
        look(1);
        runAll();
        for (int i = 0; i < 3; i++) {
            look(1);
            look(LoopWatch.LIMIT_NANOS);
            runAll();
        }

        assertThat(reports).hasSize(3);
    }

    @Test
    void areNotReportedIfTheyAnswer() {
        for (int i = 0; i < 10; i++) {
            look(LoopWatch.LIMIT_NANOS);
            runAll();
        }

        assertThat(reports).isEmpty();
    }

    private void look(long later) {
        now += later;
        watch.check(now);
    }

    private void runAll() {
        tasks.forEach(Runnable::run);
        tasks.clear();
    }
}
