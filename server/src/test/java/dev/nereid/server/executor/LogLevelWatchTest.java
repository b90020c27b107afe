package dev.nereid.server.executor;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import dev.nereid.api.ModelRef;
import dev.nereid.scheduler.Supervision;
import dev.nereid.scheduler.time.TimeoutQueue;
import dev.nereid.scheduler.time.Watchdog;
import dev.nereid.spi.CancelHook;
import dev.nereid.testkit.FakeClock;
import dev.nereid.testkit.RecordedLog;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Queue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.RejectedExecutionException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
final class LogLevelWatchTest {
    private final RecordedLog log = new RecordedLog();
    private final LogLevelWatch watch = new LogLevelWatch(Optional.empty());
    private final Queue<Runnable> tasks = new ArrayDeque<>();
    private final List<Level> told = new ArrayList<>();

    @Test
    void tellsTheLevelNowAndAfterEachChange() {
        log.setLevel(Level.INFO);
        watch.subscribe(log, tasks::add, told::add);
        assertThat(told).containsExactly(Level.INFO);

        check();
        assertThat(told).as("nothing has changed").hasSize(1);
        log.setLevel(Level.ERROR);
        check();
        log.setLevel(Level.OFF);
        check();
        log.setLevel(Level.WARNING);
        log.setLevel(Level.TRACE);
        check();

        assertThat(told).containsExactly(Level.INFO, Level.ERROR, Level.OFF, Level.TRACE);
    }

    /** A task that waits tells the last level, and is not followed by another one of the same. */
    @Test
    void runsOneActionAtATime() {
        watch.subscribe(log, tasks::add, level -> {
            told.add(level);
            watch.check(0);
            assertThat(tasks).isEmpty();
        });
        log.setLevel(Level.DEBUG);
        watch.check(0);
        log.setLevel(Level.ERROR);
        watch.check(0);

        assertThat(tasks).hasSize(1);
        check();
        assertThat(told).containsExactly(Level.TRACE, Level.ERROR);
    }

    @Test
    void anActionThatFailsRunsAgainAtTheNextChange() {
        watch.subscribe(
                log, task -> tasks.add(() -> assertThatIllegalStateException().isThrownBy(task::run)), level -> {
                    told.add(level);
                    if (told.size() > 1) {
                        throw new IllegalStateException("of a test");
                    }
                });
        log.setLevel(Level.ERROR);
        check();
        check();
        log.setLevel(Level.INFO);
        check();

        assertThat(told).containsExactly(Level.TRACE, Level.ERROR, Level.INFO);
        assertThatIllegalStateException()
                .isThrownBy(() -> watch.subscribe(log, tasks::add, _ -> {
                    throw new IllegalStateException("at once");
                }));
    }

    @Test
    void triesAgainAfterTheExecutorWasFull() {
        List<Runnable> full = new ArrayList<>();
        watch.subscribe(
                log,
                task -> {
                    if (full.isEmpty()) {
                        full.add(task);
                        throw new RejectedExecutionException("full");
                    }
                    tasks.add(task);
                },
                told::add);
        log.setLevel(Level.ERROR);
        check();
        check();

        assertThat(told).containsExactly(Level.TRACE, Level.ERROR);
    }

    @Test
    void endsWithItsHook() {
        CancelHook hook = watch.subscribe(log, tasks::add, told::add);
        log.setLevel(Level.ERROR);
        watch.check(0);
        hook.close();
        hook.close();
        check();
        log.setLevel(Level.INFO);
        check();

        assertThat(told).as("not even the task that waited").containsExactly(Level.TRACE);
    }

    @Test
    void theCloseOfAHookWaitsForTheActionUnlessCalledByIt() throws Exception {
        List<CancelHook> hooks = new ArrayList<>();
        CountDownLatch running = new CountDownLatch(1);
        CountDownLatch end = new CountDownLatch(1);
        hooks.add(watch.subscribe(log, tasks::add, level -> {
            told.add(level);
            if (level == Level.ERROR) {
                hooks.getFirst().close(); // returns at once
                running.countDown();
                awaitQuietly(end);
                told.add(Level.OFF);
            }
        }));
        log.setLevel(Level.ERROR);
        watch.check(0);
        Thread action = Thread.startVirtualThread(tasks.remove());
        running.await();
        Thread closing = Thread.startVirtualThread(() -> {
            hooks.getFirst().close();
            assertThat(told).endsWith(Level.OFF);
            told.add(Level.ALL);
        });
        end.countDown();
        action.join();
        closing.join();

        assertThat(told).containsExactly(Level.TRACE, Level.ERROR, Level.OFF, Level.ALL);
    }

    @Test
    void boundsTheActionsOfAModel() {
        List<CancelHook> hooks = new ArrayList<>();
        for (int i = 0; i < LogLevelWatch.MAX_SUBSCRIPTIONS; i++) {
            hooks.add(watch.subscribe(log, tasks::add, told::add));
        }
        told.clear();

        assertThatIllegalStateException()
                .isThrownBy(() -> watch.subscribe(log, tasks::add, told::add))
                .withMessageStartingWith("onLogLevel: 100 actions of the model (expected: fewer");
        assertThat(told).isEmpty();
        hooks.getFirst().close();
        watch.subscribe(log, tasks::add, told::add);
        assertThat(told).hasSize(1);
    }

    /** Checked by the watchdog of the server while there are actions, and at an end with the executor of the model. */
    @Test
    void isCheckedOnceASecondUntilTheModelIsClosed() {
        FakeClock clock = new FakeClock();
        TimeoutQueue timeouts = new TimeoutQueue(() -> {});
        try (Watchdog watchdog = new Watchdog(timeouts, clock)) {
            ModelExecutor executor = new ModelExecutor(
                    new ModelRef("m", 1),
                    "p",
                    new Supervision(
                            Supervision.NONE.fatalErrors(),
                            Optional.of(watchdog),
                            Duration.ZERO,
                            Duration.ZERO,
                            0,
                            false));
            CancelHook hook = executor.logLevels().subscribe(log, tasks::add, told::add);
            log.setLevel(Level.ERROR);
            clock.advance(Duration.ofSeconds(1));
            timeouts.runExpired(clock.getAsLong());
            runTasks();
            assertThat(told).containsExactly(Level.TRACE, Level.ERROR);

            executor.close(() -> {});
            log.setLevel(Level.INFO);
            clock.advance(Duration.ofSeconds(1));
            timeouts.runExpired(clock.getAsLong());
            runTasks();
            hook.close();
            executor.logLevels().subscribe(log, tasks::add, told::add);
            assertThat(told).as("once only").containsExactly(Level.TRACE, Level.ERROR, Level.INFO);
            assertThat(timeouts.runExpired(clock.getAsLong()))
                    .as("the watchdog has nothing to check")
                    .isEqualTo(Long.MAX_VALUE);
        }
    }

    private void check() {
        watch.check(0);
        runTasks();
    }

    private void runTasks() {
        for (Runnable task = tasks.poll(); task != null; task = tasks.poll()) {
            task.run();
        }
    }

    private static void awaitQuietly(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }
}
