package dev.nereid.server.memory;

import java.util.concurrent.Executor;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * Two platform threads that ask backends for the memory of their models. Safe for use by any thread. The threads end
 * when they are idle. At most one task of each model waits, and {@value #MAX_WAITING} of all.
 *
 * <p>Backends answer in native code, where a virtual thread would keep the processor of others. A backend that does not
 * return stops the refreshes of others, and nothing else.
 */
public final class MemoryThreads implements Executor {
    private static final int THREADS = 2;
    private static final long IDLE_SECONDS = 5;

    /** The maximum number of tasks that wait. */
    static final int MAX_WAITING = 4096;

    private final ThreadPoolExecutor threads = new ThreadPoolExecutor(
            THREADS,
            THREADS,
            IDLE_SECONDS,
            TimeUnit.SECONDS,
            new LinkedBlockingQueue<>(MAX_WAITING),
            Thread.ofPlatform()
                    .name("memory/", 0)
                    .daemon()
                    .inheritInheritableThreadLocals(false)
                    .factory(),
            new ThreadPoolExecutor.AbortPolicy());

    /** Creates a pool without threads. */
    public MemoryThreads() {
        threads.allowCoreThreadTimeOut(true);
    }

    /**
     * Runs a task.
     *
     * @param task the task; it waits if both threads are busy
     * @throws RejectedExecutionException if too many wait, or after {@link #end}
     */
    @Override
    public void execute(Runnable task) {
        threads.execute(task);
    }

    /** Begins no more tasks; running tasks continue. */
    public void end() {
        threads.shutdown();
        threads.getQueue().clear();
    }
}
