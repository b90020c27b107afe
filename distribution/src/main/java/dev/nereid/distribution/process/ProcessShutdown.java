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
    /** The limit for commands that have not set one yet. */
    private static final Duration DEFAULT_LIMIT = Duration.ofSeconds(30);

    private final CountDownLatch requested = new CountDownLatch(1);
    private final CountDownLatch commandEnded = new CountDownLatch(1);
    private volatile Duration limit = DEFAULT_LIMIT;
    private volatile int status;
    private volatile boolean awaited;
    private final AtomicBoolean signals = new AtomicBoolean();
    private final AtomicReference<@Nullable Exit> exit = new AtomicReference<>();

    /** An invocation of {@link System#exit} by code other than the command. */
    private record Exit(Thread caller, int status) {}

    /** Ends the interruption of a thread by shutdown. */
    public interface Interruption extends AutoCloseable {
        @Override
        void close();
    }

    /** Sets how long the command may take to end after shutdown was requested. */
    public void limit(Duration allowed) {
        limit = allowed;
    }

    /** Requests shutdown. Later calls do nothing. */
    public void request() {
        requested.countDown();
    }

    /** Records a signal; returns whether it ends the process at once, as the second one and one during shutdown do. */
    public boolean onSignal() {
        boolean first = signals.compareAndSet(false, true);
        return !first || (isRequested() && exit.get() == null);
    }

    boolean isRequested() {
        return requested.getCount() == 0;
    }

    /** Waits until shutdown is requested. */
    public void await() throws InterruptedException {
        awaited = true;
        requested.await();
    }

    /** Interrupts the calling thread when shutdown is requested, unless the result was closed before. */
    public Interruption interruptCaller() {
        Thread caller = Thread.currentThread();
        Thread waiting = Thread.ofVirtual().name("interrupt").start(() -> {
            try {
                requested.await();
                caller.interrupt();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt(); // closed
            }
        });
        return waiting::interrupt;
    }

    /** Records {@link System#exit} by this thread, unless the process ends already; returns whether it ends by this. */
    public boolean onSystemExit(int exitStatus) {
        return !isRequested()
                && !signals.get()
                && commandEnded.getCount() > 0
                && exit.compareAndSet(null, new Exit(Thread.currentThread(), exitStatus));
    }

    /** Returns the thread that ends the process by {@link System#exit}; the method does not return there. */
    public Optional<Thread> exitCaller() {
        return Optional.ofNullable(exit.get()).map(Exit::caller);
    }

    public void commandEnded(int exitStatus) {
        status = exitStatus;
        commandEnded.countDown();
    }

    /**
     * Waits for the command to end, and returns the exit status. The wait is no longer than its limit; the status is
     * that of the command or of a failure. If {@link System#exit} was invoked, its status takes precedence; a command
     * that does not wait for shutdown is not awaited, since it may need the invoking thread.
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
