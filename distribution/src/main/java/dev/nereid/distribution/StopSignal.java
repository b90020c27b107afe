package dev.nereid.distribution;

import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * The wish that the process ends, and the news that its command has. Safe for use by any thread: two latches, and a
 * limit that the command writes before it waits.
 */
final class StopSignal {
    /** What ends a command that has not said yet how long it needs. */
    private static final Duration DEFAULT_LIMIT = Duration.ofSeconds(30);

    private final CountDownLatch requested = new CountDownLatch(1);
    private final CountDownLatch ended = new CountDownLatch(1);
    private volatile Duration limit = DEFAULT_LIMIT;
    private volatile int status;

    /** Says how long the command may take to end once it is told to. */
    void limit(Duration allowed) {
        limit = allowed;
    }

    /** Tells the command to end. Later calls do nothing. */
    void request() {
        requested.countDown();
    }

    /** Says whether the command was told to end. */
    boolean isRequested() {
        return requested.getCount() == 0;
    }

    /** Waits until the command is told to end. */
    void await() throws InterruptedException {
        requested.await();
    }

    /** Tells that the command has ended. */
    void ended(int exitStatus) {
        status = exitStatus;
        ended.countDown();
    }

    /** Waits for the command to end, no longer than its limit, and returns its exit status or that of a failure. */
    int awaitEnd() throws InterruptedException {
        return ended.await(limit.toNanos(), TimeUnit.NANOSECONDS) ? status : ExitStatus.FAILURE;
    }
}
