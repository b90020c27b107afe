package dev.nereid.server.control;

import dev.nereid.api.InferenceException;
import dev.nereid.spi.ErrorCode;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * Runs the loads of models on a bounded number of platform threads, since backends load in native code. Safe for use by
 * any thread. The threads end when they are idle.
 */
final class LoadThreads {
    private static final long IDLE_SECONDS = 5;

    private final ThreadPoolExecutor threads;
    private final Runnable whenFreed;

    /**
     * Creates a pool without threads.
     *
     * @param count the number of loads at a time
     * @param whenFreed called after each load, when the memory that it took for a while is free; never blocks
     */
    LoadThreads(int count, Runnable whenFreed) {
        this.whenFreed = whenFreed;
        threads = new ThreadPoolExecutor(
                count,
                count,
                IDLE_SECONDS,
                TimeUnit.SECONDS,
                new LinkedBlockingQueue<>(),
                Thread.ofPlatform().name("load/", 0).factory());
        threads.allowCoreThreadTimeOut(true);
    }

    /**
     * Runs a load when a thread is free, and waits for its end. Its waiting callers are bounded by those of {@link
     * ControlTasks}.
     *
     * @throws InferenceException {@link ErrorCode#UNAVAILABLE} if no more loads begin; or as the load
     */
    void run(Callable<?> load) throws InterruptedException {
        try {
            Future<?> running = threads.submit(load);
            running.get();
        } catch (RejectedExecutionException | CancellationException e) {
            throw new InferenceException(ErrorCode.UNAVAILABLE, "Server not ready");
        } catch (ExecutionException e) {
            switch (e.getCause()) {
                case InferenceException failure -> throw failure;
                case InterruptedException interrupted -> throw interrupted;
                case RuntimeException fault -> throw fault;
                case Error fault -> throw fault;
                case null, default -> throw new IllegalStateException(e.getCause());
            }
        } finally {
            whenFreed.run();
        }
    }

    /** Begins no more loads; those that run go on. */
    void end() {
        threads.shutdown();
        for (Runnable waiting : List.copyOf(threads.getQueue())) {
            if (threads.remove(waiting) && waiting instanceof Future<?> load) {
                load.cancel(false);
            }
        }
    }
}
