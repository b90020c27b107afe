package dev.nereid.backend.python.execute;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DeferredExecution;
import java.util.ArrayDeque;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/** One call of {@code execute}: the batch belongs to its thread, so what another thread receives waits here for it. */
final class Execution {
    private final long id;
    private final long first;
    private final Batch batch;
    private final List<OpenRequest> requests;
    private final Runnable ended;
    private final long thread = Thread.currentThread().threadId();
    private final ReentrantLock lock = new ReentrantLock();

    @GuardedBy("lock")
    private final Queue<Runnable> received = new ArrayDeque<>();

    @GuardedBy("lock")
    private boolean closed;

    @GuardedBy("lock")
    private @Nullable DeferredExecution deferred;

    private volatile boolean frames;
    private @Nullable BackendException failure;
    private volatile boolean returned;
    private volatile boolean isDeferred;
    private boolean responded;
    private final AtomicBoolean concluded = new AtomicBoolean();

    /** Creates an execution of the current thread; {@code ended} runs when it has ended, if it was deferred. */
    Execution(long id, long first, Batch batch, List<OpenRequest> requests, Runnable ended) {
        this.id = id;
        this.first = first;
        this.batch = batch;
        this.requests = requests;
        this.ended = ended;
    }

    long id() {
        return id;
    }

    long first() {
        return first;
    }

    Batch batch() {
        return batch;
    }

    List<OpenRequest> requests() {
        return requests;
    }

    /** Returns whether the current thread is that of the execution, which has not been deferred. */
    boolean isMine() {
        return !isDeferred && Thread.currentThread().threadId() == thread;
    }

    /** Defers the execution, unless actions are left: from now on the thread that receives continues it. */
    boolean defer() {
        lock.lock();
        try {
            if (!received.isEmpty()) {
                return false;
            }
            deferred = batch.defer();
            isDeferred = true;
            closed = true;
            return true;
        } finally {
            lock.unlock();
        }
    }

    /** Takes over an execution that is deferred already. */
    void defer(DeferredExecution handle) {
        lock.lock();
        try {
            deferred = handle;
            isDeferred = true;
            closed = true;
        } finally {
            lock.unlock();
        }
    }

    boolean isDeferred() {
        return isDeferred;
    }

    void finish() {
        DeferredExecution open;
        lock.lock();
        try {
            open = deferred;
            deferred = null;
        } finally {
            lock.unlock();
        }
        ended.run();
        BackendException error = failure;
        if (open != null && error != null) {
            open.fail(error);
        } else if (open != null) {
            open.complete();
        }
    }

    /** Returns a request of this execution, or {@code null} if the handle is of another one. */
    @Nullable
    OpenRequest request(long handle) {
        long index = handle - first;
        return index >= 0 && index < requests.size() ? requests.get((int) index) : null;
    }

    /** Leaves a frame's content, without the frame, to the execution's thread; {@code false} if that has ended. */
    boolean leave(Runnable action) {
        lock.lock();
        try {
            if (!closed) {
                received.add(action);
                frames = true;
            }
            return !closed;
        } finally {
            lock.unlock();
        }
    }

    /** Returns the next action that another thread has left. */
    @Nullable
    Runnable next() {
        if (!frames) {
            return null;
        }
        lock.lock();
        try {
            Runnable action = received.poll();
            frames = !received.isEmpty();
            return action;
        } finally {
            lock.unlock();
        }
    }

    /** Says that EXECUTED has come, on the thread that receives; {@code false} if it had come before. */
    boolean setResponded() {
        boolean first = !responded;
        responded = true;
        return first;
    }

    /** Returns whether EXECUTED has come, on the thread that receives. */
    boolean isResponded() {
        return responded;
    }

    /** Ends the execution, unless actions are left. */
    boolean close() {
        lock.lock();
        try {
            closed = received.isEmpty();
            return closed;
        } finally {
            lock.unlock();
        }
    }

    /** Sets the error that the whole batch fails with; for the thread of the execution. */
    void setFailure(BackendException error) {
        failure = error;
    }

    @Nullable
    BackendException failure() {
        return failure;
    }

    /** Says that this thread applies the result of the execution now; {@code false} if one was applied before. */
    boolean conclude() {
        return concluded.compareAndSet(false, true);
    }

    /** Says that the process has returned from {@code execute}. */
    void setReturned() {
        returned = true;
    }

    boolean isReturned() {
        return returned;
    }

    /** Returns whether the thread of the execution has something to do. */
    boolean isDue() {
        return returned || frames;
    }
}
