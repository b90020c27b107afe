package dev.nereid.testkit;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.CancelHook;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.locks.ReentrantLock;

/** Records how a request ends: cancelled, failed, rescheduled or complete. Guarded by its own lock. */
final class RecordedCompletion {
    private final ReentrantLock lock = new ReentrantLock();

    @GuardedBy("lock")
    private final List<Runnable> cancelActions = new ArrayList<>();

    @GuardedBy("lock")
    private boolean cancelled;

    @GuardedBy("lock")
    private boolean completed;

    @GuardedBy("lock")
    private boolean rescheduled;

    @GuardedBy("lock")
    private Optional<BackendException> failure = Optional.empty();

    @GuardedBy("lock")
    private Optional<FakeSender> sender = Optional.empty();

    /** Makes a sender decide when the request is complete. */
    void follow(FakeSender responses) {
        lock.lock();
        try {
            sender = Optional.of(responses);
        } finally {
            lock.unlock();
        }
    }

    void cancel() {
        List<Runnable> actions;
        lock.lock();
        try {
            if (cancelled || hasEnded()) {
                return;
            }
            cancelled = true;
            sender.ifPresent(FakeSender::cancel);
            actions = List.copyOf(cancelActions);
        } finally {
            lock.unlock();
        }
        actions.forEach(Runnable::run);
    }

    boolean isCancelled() {
        lock.lock();
        try {
            return cancelled;
        } finally {
            lock.unlock();
        }
    }

    CancelHook onCancel(Runnable action) {
        boolean isLate;
        lock.lock();
        try {
            isLate = cancelled;
            if (!isLate) {
                cancelActions.add(action);
            }
        } finally {
            lock.unlock();
        }
        if (isLate) {
            action.run();
        }
        return () -> forget(action);
    }

    int openActions() {
        lock.lock();
        try {
            return cancelActions.size();
        } finally {
            lock.unlock();
        }
    }

    private void forget(Runnable action) {
        lock.lock();
        try {
            cancelActions.remove(action);
        } finally {
            lock.unlock();
        }
    }

    void reschedule() {
        lock.lock();
        try {
            if (rescheduled || completed || (sender.isPresent() && hasEnded())) {
                throw new IllegalStateException(
                        "reschedule: complete, or called twice (expected: once for each execution, before its end)");
            }
            rescheduled = true;
        } finally {
            lock.unlock();
        }
    }

    boolean isRescheduled() {
        lock.lock();
        try {
            return rescheduled;
        } finally {
            lock.unlock();
        }
    }

    void fail(BackendException error) {
        lock.lock();
        try {
            if (!completed) {
                completed = true;
                failure = Optional.of(error);
            }
        } finally {
            lock.unlock();
        }
    }

    Optional<BackendException> failure() {
        lock.lock();
        try {
            return failure;
        } finally {
            lock.unlock();
        }
    }

    /** Completes the request at the end of its execution, unless it is to be executed again. */
    void finish() {
        lock.lock();
        try {
            completed |= !rescheduled || cancelled;
        } finally {
            lock.unlock();
        }
    }

    boolean isComplete() {
        lock.lock();
        try {
            return hasEnded();
        } finally {
            lock.unlock();
        }
    }

    @GuardedBy("lock")
    private boolean hasEnded() {
        return sender.map(FakeSender::hasEnded).orElse(completed);
    }
}
