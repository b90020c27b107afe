package dev.nereid.testkit.contract;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.IntConsumer;

/** Runs an action on several threads at the same time. Static functions only. */
final class ConcurrentRuns {
    private static final int ROUNDS = 50;
    private static final long TIMEOUT_SECONDS = 120;

    private ConcurrentRuns() {}

    /** Runs rounds of an action on each thread, and fails with the first failure. */
    static void run(int threads, IntConsumer action) {
        CountDownLatch start = new CountDownLatch(threads);
        List<FutureTask<Void>> tasks = new ArrayList<>();
        for (int i = 0; i < threads; i++) {
            int thread = i;
            FutureTask<Void> task = new FutureTask<>(() -> {
                start.countDown();
                start.await();
                for (int round = 0; round < ROUNDS; round++) {
                    action.accept(thread);
                }
                return null;
            });
            tasks.add(task);
            Thread.ofPlatform().name("contract/" + thread).daemon().start(task);
        }
        tasks.forEach(ConcurrentRuns::await);
    }

    private static void await(FutureTask<Void> task) {
        try {
            task.get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
        } catch (ExecutionException e) {
            throw new AssertionError("instances at the same time: " + e.getCause(), e.getCause());
        } catch (TimeoutException e) {
            throw new AssertionError("instances at the same time: not done after " + TIMEOUT_SECONDS + " s", e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new AssertionError("interrupted", e);
        }
    }
}
