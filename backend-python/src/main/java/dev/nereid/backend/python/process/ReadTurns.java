package dev.nereid.backend.python.process;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Decides which thread receives the frames of a process: the one that executes, since a change of threads would take longer
 * than the exchange, or else the thread of the process.
 *
 * <p>The executing thread begins to receive whenever nobody does. The thread of the process receives while nothing is executed,
 * and while frames are expected that belong to no execution. When it has received the end of an execution, it leaves the turn
 * to the executing thread for the next one, and takes it again when nothing was executed for a moment.
 */
final class ReadTurns {
    /** How long the turn stays free between two executions. */
    private static final long PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(5);

    private final BooleanSupplier awaited;
    private final AtomicReference<@Nullable Thread> turn = new AtomicReference<>();
    private volatile @Nullable Thread owner;
    private final AtomicReference<@Nullable Thread> executing = new AtomicReference<>();
    private final AtomicLong executions = new AtomicLong();
    private volatile boolean ended;
    private volatile boolean wanted;

    /**
     * Creates the turns of one process.
     *
     * @param awaited whether frames are awaited that belong to no execution in progress; called by any thread
     */
    ReadTurns(BooleanSupplier awaited) {
        this.awaited = awaited;
    }

    /** Calls {@code receive} as the thread of the process until it returns {@code false}: the channel has ended. */
    void receiveAlways(BooleanSupplier receive) {
        Thread self = Thread.currentThread();
        owner = self;
        long seen = -1;
        while (!ended) {
            long begun = executions.get();
            boolean take = awaited.getAsBoolean() || wanted || begun == seen;
            seen = begun;
            if (take && turn.compareAndSet(null, self)) {
                wanted = false;
                try {
                    receiveInTurn(receive);
                } finally {
                    turn.set(null);
                    LockSupport.unpark(executing.get());
                }
                seen = -1;
            } else {
                LockSupport.parkNanos(this, PAUSE_NANOS);
            }
        }
    }

    private void receiveInTurn(BooleanSupplier receive) {
        while (true) {
            long before = executions.get();
            boolean executed = executing.get() != null;
            if (!receive.getAsBoolean()) {
                ended = true;
                return;
            }
            // An execution was in progress or began meanwhile: its thread receives the next one itself.
            boolean met = executed || executing.get() != null || executions.get() != before;
            if (met && !awaited.getAsBoolean()) {
                return;
            }
        }
    }

    /** Says that the current thread executes from now on: called before the process can respond. */
    void begin() {
        executing.set(Thread.currentThread());
        executions.incrementAndGet();
    }

    /**
     * Receives as the thread that executes, or waits while another thread receives, until something has happened, or for a
     * limited time.
     *
     * @param done whether it has happened; the thread that makes it happen calls {@link #wake}
     * @param receive receives once, waits a short time at most, and returns whether the channel is still open
     * @param limitNanos the longest time
     */
    void receiveUntil(BooleanSupplier done, BooleanSupplier receive, long limitNanos) {
        Thread self = Thread.currentThread();
        long begin = System.nanoTime();
        while (!done.getAsBoolean() && !ended) {
            if (turn.compareAndSet(null, self)) {
                try {
                    while (!done.getAsBoolean() && !ended) {
                        if (!receive.getAsBoolean()) {
                            ended = true;
                            LockSupport.unpark(owner);
                        } else if (!done.getAsBoolean() && System.nanoTime() - begin >= limitNanos) {
                            return;
                        }
                    }
                } finally {
                    turn.set(null);
                }
            } else {
                long left = limitNanos - (System.nanoTime() - begin);
                if (left <= 0) {
                    return;
                }
                LockSupport.parkNanos(this, left);
            }
        }
    }

    /** Says that the current thread executes no more. */
    void end() {
        executing.compareAndSet(Thread.currentThread(), null);
        if (ended || awaited.getAsBoolean()) {
            LockSupport.unpark(owner);
        }
    }

    /** Returns whether nothing can be received any more. */
    boolean isEnded() {
        return ended;
    }

    /** Ends the turns, if the thread of the process cannot receive any more. */
    void stop() {
        ended = true;
        LockSupport.unpark(executing.get());
    }

    void wake() {
        LockSupport.unpark(executing.get());
    }

    /** Says that a frame is awaited now that belongs to no execution. */
    void want() {
        wanted = true;
        LockSupport.unpark(owner);
    }
}
