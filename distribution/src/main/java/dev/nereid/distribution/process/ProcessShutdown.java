package dev.nereid.distribution.process;

import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * Coordinates process shutdown. Safe for use by any thread: two latches, and a limit that the command writes before
 * it waits.
 */
public final class ProcessShutdown {
    /** What ends a command that has not said yet how long it needs. */
    private static final Duration DEFAULT_LIMIT = Duration.ofSeconds(30);

    private final CountDownLatch requested = new CountDownLatch(1);
    private final CountDownLatch commandEnded = new CountDownLatch(1);
    private volatile Duration limit = DEFAULT_LIMIT;
    private volatile int status;
    private volatile boolean awaited;
    private final AtomicBoolean signals = new AtomicBoolean();
    private final AtomicReference<@Nullable Exit> exit = new AtomicReference<>();

    /** An invocation of {@link System#exit} by other code than the command. */
    private record Exit(Thread caller, int status) {}

    /** Says how long the command may take to end once it is told to. */
    public void limit(Duration allowed) {
        limit = allowed;
    }

    /** Tells the command to end. Later calls do nothing. */
    public void request() {
        requested.countDown();
    }

    /** Takes note of a signal; returns whether it is to end the process at once: the second one, or one during a stop. */
    public boolean onSignal() {
        boolean first = signals.compareAndSet(false, true);
        return !first || (isRequested() && exit.get() == null);
    }

    /** Says whether the command was told to end. */
    boolean isRequested() {
        return requested.getCount() == 0;
    }

    /** Waits until the command is told to end. */
    public void await() throws InterruptedException {
        awaited = true;
        requested.await();
    }

    /**
     * Takes note that the calling thread ends the process by {@link System#exit}, unless the process ends already.
     *
     * @return whether this is why the process ends
     */
    public boolean onSystemExit(int exitStatus) {
        return !isRequested()
                && !signals.get()
                && commandEnded.getCount() > 0
                && exit.compareAndSet(null, new Exit(Thread.currentThread(), exitStatus));
    }

    /** Returns the thread that ended the process by {@link System#exit}, which does not return from it. */
    public Optional<Thread> exitCaller() {
        return Optional.ofNullable(exit.get()).map(Exit::caller);
    }

    /** Tells that the command has ended. */
    public void commandEnded(int exitStatus) {
        status = exitStatus;
        commandEnded.countDown();
    }

    /**
     * Waits for the command to end, no longer than its limit, and returns its exit status or that of a failure. If
     * {@link System#exit} was called, its status goes first, and a command that does not wait to be told is not waited
     * for: what it does may need the thread that called.
     */
    public int awaitEnd() throws InterruptedException {
        Exit called = exit.get();
        if (called != null && !awaited) {
            return called.status();
        }
        boolean inTime = commandEnded.await(limit.toNanos(), TimeUnit.NANOSECONDS);
        if (called != null) {
            return called.status();
        }
        return inTime ? status : ExitStatus.FAILURE;
    }
}
