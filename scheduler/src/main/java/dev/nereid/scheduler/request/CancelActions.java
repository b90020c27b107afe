package dev.nereid.scheduler.request;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.spi.CancelHook;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Runs the cancel actions that a backend registered for one execution of a request. Guarded by its own lock; actions run outside of
 * it.
 *
 * <p>Created only if a request is cancelled during its execution, or if its backend registers an action. An action runs
 * at most once, since the thread that removes it from the list runs it. It never runs after the request is completed or
 * rescheduled: a completion during actions is passed to the thread that runs them, which delivers it afterwards, so the
 * completing thread does not wait. It never runs after its hook is closed: {@link Hook#close} is the only place that
 * waits for an action.
 */
final class CancelActions {
    private static final Logger LOG = LoggerFactory.getLogger(CancelActions.class);

    /** The cancel actions of an execution that is about to end: they drop all actions. Shared by all requests. */
    static final CancelActions CLOSED = new CancelActions();

    static {
        boolean closed = CLOSED.closeUnlessCancelled();
        assert closed : "CLOSED: cancelled (expected: new)";
    }

    private final ReentrantLock lock = new ReentrantLock();
    private final Condition ran = lock.newCondition();

    @GuardedBy("lock")
    private final Deque<Hook> waiting = new ArrayDeque<>(1);

    @GuardedBy("lock")
    private boolean cancelled;

    @GuardedBy("lock")
    private boolean completed;

    /** The number of threads that run actions. */
    @GuardedBy("lock")
    private int runners;

    @GuardedBy("lock")
    private @Nullable Runnable delivery;

    /** Keeps an action for a later cancellation. Runs it at once after one, and drops it after the completion. */
    CancelHook add(Runnable action) {
        Hook hook = new Hook(action);
        lock.lock();
        try {
            if (completed) {
                return hook;
            }
            waiting.add(hook);
            if (!cancelled) {
                return hook;
            }
            runners++;
        } finally {
            lock.unlock();
        }
        runAll();
        return hook;
    }

    /** Runs the actions, unless they ran before or the request is completed. */
    void cancel() {
        lock.lock();
        try {
            if (completed || cancelled) {
                return;
            }
            cancelled = true;
            runners++;
        } finally {
            lock.unlock();
        }
        runAll();
    }

    /**
     * Prevents further actions from starting.
     *
     * @param later delivers the completion; passed to the thread that runs actions at this moment, if any
     * @return whether the caller has to run {@code later}
     */
    boolean close(Runnable later) {
        lock.lock();
        try {
            completed = true;
            waiting.clear();
            delivery = runners > 0 ? later : null;
            return runners == 0;
        } finally {
            lock.unlock();
        }
    }

    /** Returns whether no action runs or will run: the request is completed, and all that began have ended. */
    boolean areDone() {
        lock.lock();
        try {
            return completed && runners == 0;
        } finally {
            lock.unlock();
        }
    }

    /**
     * Prevents further actions from starting, for an execution after which the request is rescheduled.
     *
     * @return {@code false} if actions ran or run: the request is cancelled, and must not be rescheduled
     */
    boolean closeUnlessCancelled() {
        lock.lock();
        try {
            if (cancelled) {
                return false;
            }
            completed = true;
            waiting.clear();
            return true;
        } finally {
            lock.unlock();
        }
    }

    private void runAll() {
        Runnable deferred = null;
        for (Hook hook = next(); hook != null; hook = next()) {
            ObserverScope calls = ObserverScope.current();
            calls.open(); // the thread may be an event loop: requests to other models must not wait on it
            try {
                hook.action.run();
            } catch (Throwable e) { // of the backend
                LOG.atError().setCause(e).log("cancel action of backend failed");
            } finally {
                calls.close();
            }
            ended(hook);
        }
        lock.lock();
        try {
            runners--;
            if (runners == 0) {
                deferred = delivery;
                delivery = null;
            }
        } finally {
            lock.unlock();
        }
        if (deferred != null) {
            deferred.run();
        }
    }

    private @Nullable Hook next() {
        lock.lock();
        try {
            Hook hook = waiting.poll();
            if (hook != null) {
                hook.runner = Thread.currentThread();
            }
            return hook;
        } finally {
            lock.unlock();
        }
    }

    private void ended(Hook hook) {
        lock.lock();
        try {
            hook.runner = null;
            ran.signalAll();
        } finally {
            lock.unlock();
        }
    }

    /** One registered cancel action. The runner is guarded by the lock of {@link CancelActions}. */
    private final class Hook implements CancelHook {
        private final Runnable action;
        private @Nullable Thread runner;

        Hook(Runnable action) {
            this.action = action;
        }

        @Override
        public void close() {
            lock.lock();
            try {
                waiting.remove(this);
                while (runner != null && !runner.equals(Thread.currentThread())) {
                    ran.awaitUninterruptibly();
                }
            } finally {
                lock.unlock();
            }
        }
    }
}
