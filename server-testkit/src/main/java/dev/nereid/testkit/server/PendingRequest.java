package dev.nereid.testkit.server;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.api.Cancellation;
import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.ResponseObserver;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;

/** A request that was sent to a {@link LocalServer}. Guarded by its own lock; methods that return results wait for them. */
public final class PendingRequest {
    private final Duration timeout;
    private final ReentrantLock lock = new ReentrantLock();
    private final Condition changed = lock.newCondition();
    private final ResponseObserver observer = new Recording();

    @GuardedBy("lock")
    private final List<LocalOutputs> responses = new ArrayList<>();

    @GuardedBy("lock")
    private final List<InferenceException> failedResponses = new ArrayList<>();

    @GuardedBy("lock")
    private Optional<InferenceException> error = Optional.empty();

    @GuardedBy("lock")
    private boolean ended;

    private volatile Cancellation cancellation = Cancellation.NONE;

    PendingRequest(Duration timeout) {
        this.timeout = timeout;
    }

    ResponseObserver observer() {
        return observer;
    }

    /** Takes over the handle by which the request is cancelled. */
    void begin(Cancellation handle) {
        cancellation = handle;
    }

    /**
     * Waits for the end of the request and returns its only response.
     *
     * @return the response
     * @throws InferenceException the error with which the server ended the request
     * @throws AssertionError if there is no response, more than one, or none in time
     */
    public LocalOutputs response() {
        List<LocalOutputs> all = responses();
        if (all.size() != 1) {
            throw new AssertionError("responses: " + all + " (expected: one)");
        }
        return all.getFirst();
    }

    /**
     * Waits for the end of the request and returns its responses.
     *
     * @return the responses in their order, none included
     * @throws InferenceException the error with which the server ended the request
     * @throws AssertionError if the request does not end in time
     */
    public List<LocalOutputs> responses() {
        Optional<InferenceException> failure = end();
        if (failure.isPresent()) {
            throw failure.get().withPrefix(""); // with the stack of the test
        }
        return received();
    }

    /**
     * Waits for the end of the request and returns its error.
     *
     * @return the error with which the server ended the request
     * @throws AssertionError if the request succeeds, or does not end in time
     */
    public InferenceException error() {
        return end().orElseThrow(
                        () -> new AssertionError("request succeeded with " + received() + " (expected: an error)"));
    }

    /**
     * Waits until a decoupled model has sent some responses.
     *
     * @param count the number of responses
     * @return all responses so far, at least as many
     * @throws AssertionError if the request ends before, or does not get them in time
     */
    public List<LocalOutputs> awaitResponses(int count) {
        lock.lock();
        try {
            await("response " + count, () -> responses.size() >= count || ended);
            if (responses.size() < count) {
                throw new AssertionError("responses: " + responses.size() + " at the end of the request (expected: "
                        + count + "); error: " + error);
            }
            return List.copyOf(responses);
        } finally {
            lock.unlock();
        }
    }

    /**
     * Returns the errors of failed responses so far. They do not end the request of a decoupled model.
     *
     * @return the errors
     */
    public List<InferenceException> failedResponses() {
        lock.lock();
        try {
            return List.copyOf(failedResponses);
        } finally {
            lock.unlock();
        }
    }

    /** Cancels the request, as its client would. */
    public void cancel() {
        cancellation.cancel();
    }

    /**
     * Says whether the request has ended.
     *
     * @return whether it has, with or without an error
     */
    public boolean hasEnded() {
        lock.lock();
        try {
            return ended;
        } finally {
            lock.unlock();
        }
    }

    private List<LocalOutputs> received() {
        lock.lock();
        try {
            return List.copyOf(responses);
        } finally {
            lock.unlock();
        }
    }

    private Optional<InferenceException> end() {
        lock.lock();
        try {
            await("end", () -> ended);
            return error;
        } finally {
            lock.unlock();
        }
    }

    @GuardedBy("lock")
    private void await(String what, BooleanSupplier holds) {
        long left = timeout.toNanos();
        try {
            while (!holds.getAsBoolean() && left > 0) {
                left = changed.awaitNanos(left);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new AssertionError("interrupted", e);
        }
        if (!holds.getAsBoolean()) {
            throw new AssertionError(
                    "request: no " + what + " after " + timeout + " (responses: " + responses.size() + ")");
        }
    }

    private void record(Runnable change) {
        lock.lock();
        try {
            change.run();
            changed.signalAll();
        } finally {
            lock.unlock();
        }
    }

    /** Receives the responses on threads of the server. */
    private final class Recording implements ResponseObserver {
        @Override
        public void onResponse(InferResponse response) {
            try (response) {
                LocalOutputs outputs = LocalOutputs.of(response);
                record(() -> {
                    responses.add(outputs);
                    ended |= response.isFinal();
                });
            }
        }

        @Override
        public void onFailedResponse(InferenceException failure) {
            record(() -> failedResponses.add(failure));
        }

        @Override
        public void onCompleted() {
            record(() -> ended = true);
        }

        @Override
        public void onError(InferenceException failure) {
            record(() -> {
                error = Optional.of(failure);
                ended = true;
            });
        }
    }
}
