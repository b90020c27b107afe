package dev.nereid.backend.python;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;

/** A task that runs later, unless it is cancelled before. Safe for use by any thread. */
final class DelayedTask {
    private static final Duration REFUSED_PAUSE = Duration.ofSeconds(1);

    private final Executor executor;
    private final Runnable task;
    private volatile CompletableFuture<Void> timer = new CompletableFuture<>();
    private volatile boolean cancelled;

    private DelayedTask(Executor executor, Runnable task) {
        this.executor = executor;
        this.task = task;
    }

    /**
     * Starts the time of a task. Never blocks.
     *
     * @param executor runs the task; while it refuses tasks, this tries again each second, so the task is to be cancelled before
     *     the executor is closed
     * @return the task, which is not kept after it has been cancelled
     */
    static DelayedTask start(Duration delay, Executor executor, Runnable task) {
        DelayedTask delayed = new DelayedTask(executor, task);
        delayed.begin(delay);
        return delayed;
    }

    private void begin(Duration delay) {
        CompletableFuture<Void> next = new CompletableFuture<Void>();
        timer = next;
        CompletableFuture<Void> _ = next.thenRun(this::submit);
        next.completeOnTimeout(null, delay.toMillis(), TimeUnit.MILLISECONDS);
        if (cancelled) {
            next.cancel(false);
        }
    }

    private void submit() {
        try {
            executor.execute(this::run);
        } catch (RejectedExecutionException | OutOfMemoryError e) { // refused, or no thread: again a little later
            if (!cancelled) {
                begin(REFUSED_PAUSE);
            }
        }
    }

    private void run() {
        if (!cancelled) {
            task.run();
        }
    }

    /** Cancels the task, which may run at this moment. */
    void cancel() {
        cancelled = true;
        timer.cancel(false);
    }
}
