package dev.nereid.testkit;

import static java.util.Objects.requireNonNull;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.ResponseSender;
import dev.nereid.spi.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * A {@link ResponseSender} that records the responses of a backend. Guarded by its own lock; {@link #close}
 * releases the memory of all responses.
 *
 * <p>It is ready until the test says otherwise. An action of {@link #onReady} runs on the thread that makes the sender
 * ready, outside of the lock and never inside another action of the sender: one that sends and registers itself again
 * runs in a loop.
 */
public final class FakeSender implements ResponseSender, AutoCloseable {
    private final LeakCheckingMemory memory;
    private final ReentrantLock lock = new ReentrantLock();

    @GuardedBy("lock")
    private final List<RecordedResponse> sent = new ArrayList<>();

    @GuardedBy("lock")
    private final List<BackendException> errors = new ArrayList<>();

    @GuardedBy("lock")
    private boolean ended;

    /** {@code true} if the model has one response for each request. */
    private final boolean single;

    @GuardedBy("lock")
    private boolean responded;

    @GuardedBy("lock")
    private boolean cancelled;

    @GuardedBy("lock")
    private Optional<BackendException> failure = Optional.empty();

    @GuardedBy("lock")
    private boolean ready = true;

    @GuardedBy("lock")
    private @Nullable Runnable action;

    /** {@code true} while a thread runs actions. */
    @GuardedBy("lock")
    private boolean acting;

    /**
     * Creates a sender.
     *
     * @param memory allocates memory for outputs
     */
    public FakeSender(LeakCheckingMemory memory) {
        this(memory, false);
    }

    private FakeSender(LeakCheckingMemory memory, boolean single) {
        this.memory = memory;
        this.single = single;
    }

    /**
     * Creates a sender of a request to a model that is not decoupled. A second response is refused, and an end without one
     * is a failure, as from the server.
     *
     * @param memory allocates memory for outputs
     */
    public static FakeSender ofOneResponse(LeakCheckingMemory memory) {
        return new FakeSender(memory, true);
    }

    /** Returns whether its model has one response for each request. */
    boolean hasOneResponse() {
        return single;
    }

    @GuardedBy("lock")
    private void checkFirst() {
        if (single && responded) {
            throw new IllegalStateException(
                    "sender: a second response (expected: one, since the model is not decoupled)");
        }
    }

    /**
     * Returns the responses that were sent so far.
     *
     * @return the outputs of each response, by name
     */
    public List<Map<String, Tensor>> responses() {
        lock.lock();
        try {
            return sent.stream().map(RecordedResponse::outputs).toList();
        } finally {
            lock.unlock();
        }
    }

    /**
     * Returns the errors of failed responses that were sent so far.
     *
     * @return the errors, without the one that ended the request
     */
    public List<BackendException> failedResponses() {
        lock.lock();
        try {
            return List.copyOf(errors);
        } finally {
            lock.unlock();
        }
    }

    /**
     * Says whether the backend ended the request.
     *
     * @return whether it did, with or without an error
     */
    public boolean hasEnded() {
        lock.lock();
        try {
            return ended;
        } finally {
            lock.unlock();
        }
    }

    /**
     * Returns the error that ended the request.
     *
     * @return the error, or empty if there was none
     */
    public Optional<BackendException> failure() {
        lock.lock();
        try {
            return failure;
        } finally {
            lock.unlock();
        }
    }

    /**
     * Sets whether the client reads its responses.
     *
     * @param now whether it does from now on; if so, the action of the backend runs on this thread
     */
    public void setReady(boolean now) {
        lock.lock();
        try {
            ready = now;
        } finally {
            lock.unlock();
        }
        runActions();
    }

    /**
     * Says whether an action of the backend waits until the sender is ready.
     *
     * @return whether one was registered and has not run
     */
    public boolean isAwaited() {
        lock.lock();
        try {
            return action != null;
        } finally {
            lock.unlock();
        }
    }

    /** Cancels the request. The caller runs the actions afterwards. */
    void cancel() {
        lock.lock();
        try {
            cancelled = true;
        } finally {
            lock.unlock();
        }
    }

    /** Runs the action while there is one and the sender is ready, unless a thread does so already. */
    void runActions() {
        for (Runnable next = nextAction(false); next != null; next = nextAction(true)) {
            boolean done = false;
            try {
                next.run();
                done = true;
            } finally {
                if (!done) {
                    stopActing();
                }
            }
        }
    }

    private @Nullable Runnable nextAction(boolean continued) {
        lock.lock();
        try {
            if (acting && !continued) {
                return null;
            }
            Runnable next = isReadyNow() ? action : null;
            if (next != null) {
                action = null;
            }
            acting = next != null;
            return next;
        } finally {
            lock.unlock();
        }
    }

    private void stopActing() {
        lock.lock();
        try {
            acting = false;
        } finally {
            lock.unlock();
        }
    }

    @GuardedBy("lock")
    private boolean isReadyNow() {
        return ready || ended || cancelled;
    }

    @Override
    public boolean isReady() {
        lock.lock();
        try {
            return isReadyNow();
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void onReady(Runnable action) {
        requireNonNull(action, "action");
        lock.lock();
        try {
            this.action = action;
        } finally {
            lock.unlock();
        }
        runActions();
    }

    @Override
    public InferenceResponse newResponse() {
        return new RecordedResponse(memory);
    }

    @Override
    public void send(InferenceResponse response) {
        take(response, false);
    }

    @Override
    public void sendError(BackendException error) {
        requireNonNull(error, "error");
        lock.lock();
        try {
            checkFirst();
            responded = true;
            if (!ended && !cancelled && single) {
                failure = Optional.of(error);
            } else if (!ended && !cancelled) {
                errors.add(error);
            }
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void complete(InferenceResponse response) {
        take(response, true);
    }

    private void take(InferenceResponse response, boolean isFinal) {
        if (!(response instanceof RecordedResponse own) || own.hasEnded()) {
            throw new IllegalArgumentException("response: " + response + " (expected: new, made by this sender)");
        }
        lock.lock();
        try {
            ended |= isFinal && single && responded; // all the same
            if (ended || cancelled || (single && responded)) {
                own.discard();
                checkFirst();
                responded = true;
            } else {
                responded = true;
                own.end();
                sent.add(own);
            }
            ended |= isFinal;
        } finally {
            lock.unlock();
        }
        runActions();
    }

    @Override
    public void complete() {
        lock.lock();
        try {
            if (!ended && single && !responded) {
                failure = Optional.of(new BackendException(
                        ErrorCode.INTERNAL, "sender: ended without a response (expected: one, or an error)"));
            }
            ended = true;
        } finally {
            lock.unlock();
        }
        runActions();
    }

    @Override
    public void fail(BackendException error) {
        requireNonNull(error, "error");
        lock.lock();
        try {
            if (!ended && !(single && responded)) {
                failure = Optional.of(error);
            }
            ended = true;
        } finally {
            lock.unlock();
        }
        runActions();
    }

    @Override
    public boolean isCancelled() {
        lock.lock();
        try {
            return cancelled;
        } finally {
            lock.unlock();
        }
    }

    /** Releases the memory of all responses. */
    @Override
    public void close() {
        lock.lock();
        try {
            sent.forEach(RecordedResponse::release);
            sent.clear();
        } finally {
            lock.unlock();
        }
    }
}
