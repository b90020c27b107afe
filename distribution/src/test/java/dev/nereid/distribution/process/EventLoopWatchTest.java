package dev.nereid.distribution.process;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.server.instance.ExecutingInstance;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.RejectedExecutionException;
import org.junit.jupiter.api.Test;

/** Reports of blocked event loops. */
final class EventLoopWatchTest {
    private final List<Runnable> tasks = new ArrayList<>();
    private final List<String> reports = new ArrayList<>();
    private Optional<ExecutingInstance> executing = Optional.of(new ExecutingInstance("m", 1, "m_0"));
    private Runnable duringRead = () -> {};
    private final EventLoopWatch eventLoopWatch = new EventLoopWatch(
            List.of(tasks::add),
            thread -> executing,
            thread -> {
                duringRead.run();
                return new StackTraceElement[0];
            },
            (thread, stack, instance, elapsed) -> reports.add(thread.getName() + " " + instance.orElseThrow()),
            ended -> reports.add("ended: " + ended));
    private long now;

    @Test
    void areReportedOnceWithTheModel() {
        check(1);
        runAll();
        for (int i = 0; i < 10; i++) {
            check(EventLoopWatch.LIMIT_NANOS);
        }

        ExecutingInstance instance = new ExecutingInstance("m", 1, "m_0");
        assertThat(reports).containsExactly(Thread.currentThread().getName() + " " + instance);
        assertThat(tasks).as("given to the loop and not done").hasSize(1);
    }

    @Test
    void areReportedLaterIfAnotherModelExecutesAsTheStackIsRead() {
        check(1);
        runAll();
        check(1);
        duringRead = () -> executing = Optional.of(new ExecutingInstance("other", 1, "other_0"));
        check(EventLoopWatch.LIMIT_NANOS);
        assertThat(reports).isEmpty();

        duringRead = () -> {};
        check(1);

        assertThat(reports).singleElement().asString().contains("other_0");
    }

    @Test
    void areNotReportedIfTheyGoOnAsTheStackIsRead() {
        check(1);
        runAll();
        check(1);
        duringRead = this::runAll;

        check(EventLoopWatch.LIMIT_NANOS);

        assertThat(reports).isEmpty();
    }

    @Test
    void areReportedIfTheyNeverRanATask() {
        runAll(); // given when the watch began
        check(1);
        check(EventLoopWatch.LIMIT_NANOS);

        assertThat(reports).hasSize(1);
    }

    @Test
    void areReportedAgainIfTheyStandStillAgain() {
        check(1);
        runAll();
        for (int i = 0; i < 3; i++) {
            check(1);
            check(EventLoopWatch.LIMIT_NANOS);
            runAll();
        }

        assertThat(reports).hasSize(3);
    }

    @Test
    void areNotReportedIfTheyRunTheirTask() {
        for (int i = 0; i < 10; i++) {
            check(EventLoopWatch.LIMIT_NANOS);
            runAll();
        }

        assertThat(reports).isEmpty();
    }

    @Test
    void areReportedOnceWhenTheirThreadHasEnded() throws InterruptedException {
        Thread loop = new Thread(() -> tasks.forEach(Runnable::run), "loop");
        loop.start();
        loop.join();

        check(1);
        check(EventLoopWatch.LIMIT_NANOS);
        check(EventLoopWatch.LIMIT_NANOS);

        assertThat(reports).containsExactly("ended: loop");
    }

    @Test
    void areReportedOnceWhenTheyRefuseTasks() {
        List<String> ended = new ArrayList<>();
        List<Runnable> first = new ArrayList<>();
        EventLoopWatch watch = new EventLoopWatch(
                List.of(task -> {
                    if (!first.isEmpty()) {
                        throw new RejectedExecutionException("shut down");
                    }
                    first.add(task);
                }),
                thread -> Optional.empty(),
                Thread::getStackTrace,
                (thread, stack, instance, elapsed) -> ended.add("blocked"),
                ended::add);

        watch.check(1);
        watch.check(1 + EventLoopWatch.LIMIT_NANOS);
        watch.check(1 + 2 * EventLoopWatch.LIMIT_NANOS);

        assertThat(ended).hasSize(1).doesNotContain("blocked");
    }

    private void check(long later) {
        now += later;
        eventLoopWatch.check(now);
    }

    private void runAll() {
        tasks.forEach(Runnable::run);
        tasks.clear();
    }
}
