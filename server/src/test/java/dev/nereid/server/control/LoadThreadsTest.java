package dev.nereid.server.control;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.InferenceException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** How many loads run at a time. */
@Timeout(60)
final class LoadThreadsTest {
    private static final int LOADS = 10;

    private final AtomicInteger running = new AtomicInteger();
    private final AtomicInteger most = new AtomicInteger();
    private final AtomicInteger freed = new AtomicInteger();

    /** Every caller waits before the gate opens, so that all loads that may run at once do. */
    @ParameterizedTest
    @ValueSource(ints = {1, 2, 4, 10})
    void runsAsManyLoadsAtATimeAsThereAreThreads(int count) throws Exception {
        LoadThreads threads = new LoadThreads(count, freed::incrementAndGet);
        CountDownLatch begun = new CountDownLatch(count);
        CountDownLatch gate = new CountDownLatch(1);
        List<Thread> callers = new ArrayList<>();
        for (int i = 0; i < LOADS; i++) {
            callers.add(Thread.ofPlatform().start(() -> load(threads, begun, gate)));
        }

        begun.await();
        for (Thread caller : callers) {
            while (caller.getState() != Thread.State.WAITING) {
                Thread.onSpinWait(); // until its load was submitted, for which a thread would have been started
            }
        }
        assertThat(running).hasValue(count);
        gate.countDown();
        for (Thread caller : callers) {
            caller.join();
        }

        assertThat(most).hasValue(count);
        assertThat(freed).hasValue(LOADS);
        threads.end();
    }

    private void load(LoadThreads threads, CountDownLatch begun, CountDownLatch gate) {
        try {
            threads.run(() -> {
                most.accumulateAndGet(running.incrementAndGet(), Math::max);
                begun.countDown();
                gate.await();
                return running.decrementAndGet();
            });
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    @Test
    void beginsNoLoadAfterItsEnd() throws Exception {
        LoadThreads threads = new LoadThreads(1, () -> {});
        CountDownLatch begun = new CountDownLatch(1);
        CountDownLatch gate = new CountDownLatch(1);
        Thread runs = Thread.ofPlatform().start(() -> load(threads, begun, gate));
        begun.await();
        List<String> failures = new ArrayList<>();
        Thread waits = Thread.ofPlatform().start(() -> {
            try {
                threads.run(() -> failures.add("it ran"));
            } catch (InferenceException | InterruptedException e) {
                failures.add(e.getMessage());
            }
        });
        while (waits.getState() != Thread.State.WAITING) {
            Thread.onSpinWait();
        }

        threads.end();

        waits.join();
        assertThat(failures).containsExactly("Server not ready");
        gate.countDown();
        runs.join();
        assertThat(running).as("the load that ran has ended").hasValue(0);
    }
}
