package dev.nereid.scheduler.time;

import static java.util.Objects.requireNonNull;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.api.FatalErrorHandler;
import java.util.PriorityQueue;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A timer without a thread, which runs its timeouts when called. Has no thread: somebody has to call
 * {@link #runExpired}. Guarded by its lock; actions run outside of it.
 */
public final class TimeoutQueue implements Timer {
    private static final Logger LOG = LoggerFactory.getLogger(TimeoutQueue.class);

    private final Runnable onEarlierTimeout;
    private final FatalErrorHandler fatalErrors;
    private final ReentrantLock lock = new ReentrantLock();

    /** The alarms that are set, the next one first. There are as many as models: to find one may take a search. */
    @GuardedBy("lock")
    private final PriorityQueue<QueuedTimeout> timeouts =
            new PriorityQueue<>((one, other) -> Long.signum(one.deadlineNanos - other.deadlineNanos));

    /**
     * Creates a timer without alarms.
     *
     * @param earlier called by whoever sets an alarm that is to ring before all others; must not block
     */
    public TimeoutQueue(Runnable earlier) {
        this(earlier, FatalErrorHandler.NONE);
    }

    /**
     * Creates a timer without alarms.
     *
     * @param earlier called by whoever sets an alarm that is to ring before all others; must not block
     * @param fatalErrors is told if an action fails with such an error
     */
    public TimeoutQueue(Runnable earlier, FatalErrorHandler fatalErrors) {
        this.onEarlierTimeout = requireNonNull(earlier, "earlier");
        this.fatalErrors = requireNonNull(fatalErrors, "fatalErrors");
    }

    @Override
    public Timeout newTimeout(Runnable action) {
        return new QueuedTimeout(action);
    }

    /**
     * Rings all alarms that are due, on the thread of the caller, which has to be the only one to call.
     *
     * @param nowNanos the time, on the scale of the alarms
     * @return how many nanoseconds later the next alarm is due; {@link Long#MAX_VALUE} if none is set
     */
    public long runExpired(long nowNanos) {
        for (QueuedTimeout due = pollExpired(nowNanos); due != null; due = pollExpired(nowNanos)) {
            try {
                due.action.run();
            } catch (Throwable e) { // the timer serves all models, and must outlive the fault of one
                fatalErrors.check(e);
                LOG.atError().setCause(e).log("action of alarm failed");
            }
        }
        lock.lock();
        try {
            QueuedTimeout next = timeouts.peek();
            return next == null ? Long.MAX_VALUE : Math.max(0, next.deadlineNanos - nowNanos);
        } finally {
            lock.unlock();
        }
    }

    /** Takes the next alarm that is due. */
    private @Nullable QueuedTimeout pollExpired(long nowNanos) {
        lock.lock();
        try {
            QueuedTimeout next = timeouts.peek();
            return next != null && nowNanos - next.deadlineNanos >= 0 ? timeouts.poll() : null;
        } finally {
            lock.unlock();
        }
    }

    /**
     * One timeout of the queue. The fields that change are guarded by the lock of all; an alarm is set while it is in
     * the queue.
     */
    private final class QueuedTimeout implements Timeout {
        private final Runnable action;
        private long deadlineNanos;
        private boolean closed;

        QueuedTimeout(Runnable action) {
            this.action = requireNonNull(action, "action");
        }

        @Override
        public void scheduleAtLatest(long due) {
            lock.lock();
            try {
                if (closed || (timeouts.contains(this) && deadlineNanos - due <= 0)) {
                    return;
                }
                timeouts.remove(this);
                deadlineNanos = due;
                timeouts.add(this);
                if (!equals(timeouts.peek())) {
                    return;
                }
            } finally {
                lock.unlock();
            }
            onEarlierTimeout.run();
        }

        @Override
        public void close() {
            lock.lock();
            try {
                closed = true;
                timeouts.remove(this);
            } finally {
                lock.unlock();
            }
        }
    }
}
