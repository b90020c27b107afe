package dev.nereid.server.control;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.InferenceException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
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
    private static final Duration LONG = Duration.ofHours(1);

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

    /** More loads pause than there are permits; what pauses beyond that keeps its permit. */
    @Test
    void aLoadThatWaitsReleasesItsPermit() throws Exception {
        LoadThreads threads = new LoadThreads(1, () -> {});
        List<String> pauses = new CopyOnWriteArrayList<>();
        threads.follow(new LoadThreads.Follower() {
            @Override
            public void paused() {
                pauses.add("paused");
            }

            @Override
            public void resumed() {
                pauses.add("resumed");
            }
        });
        List<CompletableFuture<Void>> stages = new ArrayList<>();
        List<Thread> callers = new ArrayList<>();
        for (int i = 0; i < LoadThreads.MAX_PAUSES; i++) {
            CountDownLatch begun = new CountDownLatch(1);
            CompletableFuture<Void> stage = new CompletableFuture<>();
            stages.add(stage);
            callers.add(Thread.ofPlatform()
                    .start(() -> run(threads, () -> {
                        begun.countDown();
                        return threads.await(stage, LONG) ? running.incrementAndGet() : 0;
                    })));
            begun.await(); // for which the permit of the one before is needed
        }
        threads.run(() -> most.incrementAndGet()); // beside all of them
        assertThat(running).hasValue(0);
        assertThat(pauses).hasSize(LoadThreads.MAX_PAUSES).containsOnly("paused");

        CountDownLatch begun = new CountDownLatch(1);
        CompletableFuture<Void> beyond = new CompletableFuture<>();
        callers.add(Thread.ofPlatform()
                .start(() -> run(threads, () -> {
                    begun.countDown();
                    return threads.await(beyond, LONG) ? running.incrementAndGet() : 0;
                })));
        begun.await();
        stages.forEach(stage -> stage.complete(null));
        beyond.completeExceptionally(new IllegalStateException("a failure ends the wait too"));
        for (Thread caller : callers) {
            caller.join();
        }

        assertThat(running).hasValue(LoadThreads.MAX_PAUSES + 1);
        assertThat(pauses).hasSize(2 * LoadThreads.MAX_PAUSES);
        threads.end();
    }

    /** Each load waits for the next: none could go on if one of them kept its permit. */
    @Test
    void aLoadThatWaitsForAnotherAlwaysReleasesItsPermit() throws Exception {
        LoadThreads threads = new LoadThreads(1, () -> {});
        runChain(threads, 3 * LoadThreads.MAX_PAUSES);

        assertThat(running).hasValue(3 * LoadThreads.MAX_PAUSES + 1);
        assertThat(threads.isLoad()).isFalse();
        threads.end();
    }

    private void runChain(LoadThreads threads, int more) throws InterruptedException {
        threads.run(() -> {
            assertThat(threads.isLoad()).isTrue();
            if (more > 0) {
                CompletableFuture<Void> next = new CompletableFuture<>();
                Thread.ofPlatform().start(() -> {
                    try {
                        runChain(threads, more - 1);
                        next.complete(null);
                    } catch (InterruptedException | RuntimeException e) {
                        next.completeExceptionally(e);
                    }
                });
                assertThat(threads.awaitLoad(next, LONG)).isTrue();
            }
            return running.incrementAndGet();
        });
    }

    private static void run(LoadThreads threads, Callable<?> load) {
        try {
            threads.run(load);
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    @Test
    void aWaitEndsWithItsLimitAndWithTheServer() throws Exception {
        LoadThreads threads = new LoadThreads(1, () -> {});
        CompletableFuture<Void> never = new CompletableFuture<>();
        threads.run(() -> {
            assertThat(threads.await(never, Duration.ofNanos(1))).isFalse();
            return null;
        });
        CountDownLatch begun = new CountDownLatch(1);
        CompletableFuture<String> outcome = new CompletableFuture<>();
        Thread waits = Thread.ofPlatform().start(() -> {
            try {
                threads.run(() -> {
                    begun.countDown();
                    return threads.await(never, LONG);
                });
            } catch (InferenceException | InterruptedException e) {
                outcome.complete(e.getMessage());
            }
        });
        begun.await();

        threads.end();
        threads.end();

        waits.join();
        assertThat(outcome).isCompletedWithValue("Server not ready");
    }
}
