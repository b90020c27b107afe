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
 * Alarms and the moments to which they are set. Has no thread: somebody has to call {@link #ring}. Guarded by its lock;
 * actions run outside of it.
 */
public final class Alarms implements Timer {
    private static final Logger LOG = LoggerFactory.getLogger(Alarms.class);

    private final Runnable earlier;
    private final FatalErrorHandler fatalErrors;
    private final ReentrantLock lock = new ReentrantLock();

    /** The alarms that are set, the next one first. There are as many as models: to find one may take a search. */
    @GuardedBy("lock")
    private final PriorityQueue<SetAlarm> alarms =
            new PriorityQueue<>((one, other) -> Long.signum(one.dueNanos - other.dueNanos));

    /**
     * Creates a timer without alarms.
     *
     * @param earlier called by whoever sets an alarm that is to ring before all others; must not block
     */
    public Alarms(Runnable earlier) {
        this(earlier, FatalErrorHandler.NONE);
    }

    /**
     * Creates a timer without alarms.
     *
     * @param earlier called by whoever sets an alarm that is to ring before all others; must not block
     * @param fatalErrors is told if an action fails with such an error
     */
    public Alarms(Runnable earlier, FatalErrorHandler fatalErrors) {
        this.earlier = requireNonNull(earlier, "earlier");
        this.fatalErrors = requireNonNull(fatalErrors, "fatalErrors");
    }

    @Override
    public Alarm alarm(Runnable action) {
        return new SetAlarm(action);
    }

    /**
     * Rings all alarms that are due, on the thread of the caller, which has to be the only one to call.
     *
     * @param nowNanos the time, on the scale of the alarms
     * @return how many nanoseconds later the next alarm is due; {@link Long#MAX_VALUE} if none is set
     */
    public long ring(long nowNanos) {
        for (SetAlarm due = due(nowNanos); due != null; due = due(nowNanos)) {
            try {
                due.action.run();
            } catch (Throwable e) { // the timer serves all models, and must outlive the fault of one
                fatalErrors.check(e);
                LOG.atError().setCause(e).log("action of alarm failed");
            }
        }
        lock.lock();
        try {
            SetAlarm next = alarms.peek();
            return next == null ? Long.MAX_VALUE : Math.max(0, next.dueNanos - nowNanos);
        } finally {
            lock.unlock();
        }
    }

    /** Takes the next alarm that is due. */
    private @Nullable SetAlarm due(long nowNanos) {
        lock.lock();
        try {
            SetAlarm next = alarms.peek();
            return next != null && nowNanos - next.dueNanos >= 0 ? alarms.poll() : null;
        } finally {
            lock.unlock();
        }
    }

    /** One alarm. The fields that change are guarded by the lock of all; an alarm is set while it is in the queue. */
    private final class SetAlarm implements Alarm {
        private final Runnable action;
        private long dueNanos;
        private boolean closed;

        SetAlarm(Runnable action) {
            this.action = requireNonNull(action, "action");
        }

        @Override
        public void atLatest(long due) {
            lock.lock();
            try {
                if (closed || (alarms.contains(this) && dueNanos - due <= 0)) {
                    return;
                }
                alarms.remove(this);
                dueNanos = due;
                alarms.add(this);
                if (!equals(alarms.peek())) {
                    return;
                }
            } finally {
                lock.unlock();
            }
            earlier.run();
        }

        @Override
        public void close() {
            lock.lock();
            try {
                closed = true;
                alarms.remove(this);
            } finally {
                lock.unlock();
            }
        }
    }
}
