package dev.nereid.server.control;

import dev.nereid.api.InferenceException;
import dev.nereid.server.instance.LoadWaits;
import dev.nereid.spi.ErrorCode;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.Semaphore;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Runs the loads of models on platform threads, since backends load in native code. Safe for use by any thread. The
 * threads end when they are idle.
 *
 * <p>A load needs one of a number of permits, which it releases while it waits for something slow: a pause. For the start
 * of instances there are at most so many pauses at a time; further loads keep their permits while they wait. A load that
 * waits for another one always pauses. So the threads are bounded by the permits, the pauses and the models.
 */
final class LoadThreads implements LoadWaits {
    /** The most pauses at a time, for each permit. */
    static final int MAX_PAUSES = 4;

    private static final Logger LOG = LoggerFactory.getLogger(LoadThreads.class);

    private static final long IDLE_SECONDS = 5;

    /** More than there are waiting loads. */
    private static final int ALL = Integer.MAX_VALUE / 2;

    private final ThreadPoolExecutor threads = new ThreadPoolExecutor(
            0,
            Integer.MAX_VALUE,
            IDLE_SECONDS,
            TimeUnit.SECONDS,
            new SynchronousQueue<>(),
            Thread.ofPlatform().name("load/", 0).factory());

    private final Semaphore permits;
    private final Semaphore pauses;

    /** Set once a load had to wait with its permit, which is logged once. */
    private final AtomicBoolean noneLeft = new AtomicBoolean();

    private final Runnable whenFreed;

    /** The threads of loads that have permits. */
    private final Set<Thread> holders = ConcurrentHashMap.newKeySet();

    private final CompletableFuture<Void> ended = new CompletableFuture<>();
    private volatile Follower follower = new Follower() {};

    /** Follows the pauses of loads. */
    interface Follower {
        /** A load releases its permit. Never blocks. */
        default void paused() {}

        /** A load that was paused goes on. Never blocks. */
        default void resumed() {}
    }

    /**
     * Creates a pool without threads.
     *
     * @param count the number of permits
     * @param whenFreed called after each load, when the memory that it took for a while is free; never blocks
     */
    LoadThreads(int count, Runnable whenFreed) {
        this.whenFreed = whenFreed;
        permits = new Semaphore(count, true);
        pauses = new Semaphore((int) Math.min(ALL, (long) count * MAX_PAUSES));
    }

    /** Returns whether a load has a permit: one runs, or waits for another one. */
    boolean areUsed() {
        return !holders.isEmpty();
    }

    /** Notifies a follower of pauses from now on, in place of an earlier one. */
    void follow(Follower next) {
        follower = next;
    }

    /**
     * Runs a load when there is a permit, and waits for its end. {@link ControlTasks} bounds the number of its waiting
     * callers.
     *
     * @throws InferenceException {@link ErrorCode#UNAVAILABLE} if no more loads begin; or as the load
     */
    void run(Callable<?> load) throws InterruptedException {
        permits.acquire();
        try {
            checkOpen();
            Future<?> running = threads.submit(() -> hold(load));
            running.get();
        } catch (RejectedExecutionException e) {
            throw notReady();
        } catch (ExecutionException e) {
            switch (e.getCause()) {
                case InferenceException failure -> throw failure;
                case InterruptedException interrupted -> throw interrupted;
                case RuntimeException fault -> throw fault;
                case Error fault -> throw fault;
                case null, default -> throw new IllegalStateException(e.getCause());
            }
        } finally {
            permits.release();
            whenFreed.run();
        }
    }

    private <T> T hold(Callable<T> load) throws Exception {
        holders.add(Thread.currentThread());
        try {
            return load.call();
        } finally {
            holders.remove(Thread.currentThread());
        }
    }

    @Override
    public boolean await(CompletableFuture<?> stage, Duration limit) throws InterruptedException {
        boolean isPausing = !stage.isDone() && isLoad();
        boolean isCounted = isPausing && pauses.tryAcquire();
        if (isPausing && !isCounted && noneLeft.compareAndSet(false, true)) {
            LOG.warn(
                    "as many loads as possible wait for slow instances or other work: further ones keep their permits of"
                            + " --model-load-thread-count while they wait");
        }
        return await(stage, limit, isCounted, isCounted);
    }

    /**
     * Waits for another load, which needs a permit itself: as {@link #await}, but the load on the calling thread releases
     * its permit in any case. Such waits are bounded by the number of models.
     */
    boolean awaitLoad(CompletableFuture<?> load, Duration limit) throws InterruptedException {
        boolean isPaused = !load.isDone() && isLoad();
        return await(load, limit, isPaused, isPaused && pauses.tryAcquire());
    }

    boolean isLoad() {
        return holders.contains(Thread.currentThread());
    }

    private boolean await(CompletableFuture<?> stage, Duration limit, boolean isPaused, boolean isCounted)
            throws InterruptedException {
        if (isCounted) {
            follower.paused();
        }
        if (isPaused) {
            permits.release();
        }
        try {
            CompletableFuture.anyOf(stage, ended).get(limit.toNanos(), TimeUnit.NANOSECONDS);
        } catch (ExecutionException | TimeoutException e) {
            return stage.isDone();
        } finally {
            if (isPaused) {
                permits.acquireUninterruptibly(); // at the latest when no more loads begin
            }
            if (isCounted) {
                pauses.release();
                follower.resumed();
            }
        }
        if (!stage.isDone()) {
            checkOpen();
        }
        return stage.isDone();
    }

    private void checkOpen() {
        if (ended.isDone()) {
            throw notReady();
        }
    }

    private static InferenceException notReady() {
        return new InferenceException(ErrorCode.UNAVAILABLE, "Server not ready");
    }

    /** Begins no more loads, and ends pauses; loads that run go on. */
    void end() {
        threads.shutdown();
        if (ended.complete(null)) {
            permits.release(ALL); // what waits sees the end
        }
    }
}
