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
 * A timer without a thread: its caller fires timeouts by {@link #runExpired}. Guarded by its lock; actions run outside
 * of it.
 */
public final class TimeoutQueue implements Timer {
    private static final Logger LOG = LoggerFactory.getLogger(TimeoutQueue.class);

    private final Runnable onEarlierTimeout;
    private final FatalErrorHandler fatalErrors;
    private final ReentrantLock lock = new ReentrantLock();

    /** The scheduled timeouts, the next one first. Their number is that of models, so a linear search is acceptable. */
    @GuardedBy("lock")
    private final PriorityQueue<QueuedTimeout> timeouts =
            new PriorityQueue<>((one, other) -> Long.signum(one.deadlineNanos - other.deadlineNanos));

    /**
     * Creates a timer without timeouts.
     *
     * @param onEarlierTimeout called by a thread that schedules a timeout to fire before all others; must not block
     */
    public TimeoutQueue(Runnable onEarlierTimeout) {
        this(onEarlierTimeout, FatalErrorHandler.NONE);
    }

    /**
     * Creates a timer without timeouts.
     *
     * @param onEarlierTimeout called by a thread that schedules a timeout to fire before all others; must not block
     * @param fatalErrors notified of fatal errors of actions
     */
    public TimeoutQueue(Runnable onEarlierTimeout, FatalErrorHandler fatalErrors) {
        this.onEarlierTimeout = requireNonNull(onEarlierTimeout, "onEarlierTimeout");
        this.fatalErrors = requireNonNull(fatalErrors, "fatalErrors");
    }

    @Override
    public Timeout newTimeout(Runnable action) {
        return new QueuedTimeout(action);
    }

    /**
     * Fires all expired timeouts on the calling thread. Only one thread may call this.
     *
     * @param nowNanos the time, on the scale of the timeouts
     * @return the nanoseconds until the next timeout fires; {@link Long#MAX_VALUE} if none is scheduled
     */
    public long runExpired(long nowNanos) {
        for (QueuedTimeout expired = pollExpired(nowNanos); expired != null; expired = pollExpired(nowNanos)) {
            try {
                expired.action.run();
            } catch (Throwable e) { // the timer serves all models, and goes on after the failure of one
                fatalErrors.check(e);
                LOG.atError().setCause(e).log("action of timeout failed");
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

    /** Removes the next expired timeout; {@code null} if there is none. */
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
     * One timeout of the queue. The mutable fields are guarded by the lock of the queue; a timeout is scheduled while
     * it is in the queue.
     */
    private final class QueuedTimeout implements Timeout {
        private final Runnable action;
        private long deadlineNanos;
        private boolean closed;

        QueuedTimeout(Runnable action) {
            this.action = requireNonNull(action, "action");
        }

        @Override
        public void scheduleAtLatest(long requestedNanos) {
            lock.lock();
            try {
                if (closed || (timeouts.contains(this) && deadlineNanos - requestedNanos <= 0)) {
                    return;
                }
                timeouts.remove(this);
                deadlineNanos = requestedNanos;
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
