package dev.nereid.testkit.server;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ModelResponse;
import dev.nereid.spi.ModelResponseObserver;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Predicate;
import java.util.function.UnaryOperator;

/**
 * Recorded responses of a request of {@link LocalServer#send}. Guarded by its own lock; methods that return results
 * wait for them.
 *
 * <p>It owns the responses.
 */
public final class ReceivedResponses implements AutoCloseable {
    /** State of the record so far. Immutable. */
    private record Received(
            List<ModelResponse> responses,
            List<BackendException> failedResponses,
            Optional<BackendException> error,
            boolean hasEnded) {
        static final Received NOTHING = new Received(List.of(), List.of(), Optional.empty(), false);

        Received with(ModelResponse response) {
            return new Received(plus(responses, response), failedResponses, error, hasEnded);
        }

        Received withFailedResponse(BackendException failure) {
            return new Received(responses, plus(failedResponses, failure), error, hasEnded);
        }

        Received ended(Optional<BackendException> failure) {
            return new Received(responses, failedResponses, failure, true);
        }

        private static <T> List<T> plus(List<T> list, T added) {
            List<T> longer = new ArrayList<>(list);
            longer.add(added);
            return List.copyOf(longer);
        }
    }

    private final Duration timeout;
    private final ReentrantLock lock = new ReentrantLock();
    private final Condition changed = lock.newCondition();

    @GuardedBy("lock")
    private Received received = Received.NOTHING;

    @GuardedBy("lock")
    private boolean closed;

    ReceivedResponses(Duration timeout) {
        this.timeout = timeout;
    }

    /** Returns what receives the responses. */
    ModelResponseObserver observer() {
        return new Recording();
    }

    /**
     * Waits for the end of the request and returns its only response.
     *
     * @throws BackendException the error with which the server ended the request
     * @throws AssertionError if there is no response, more than one, or none in time
     */
    public ModelResponse one() {
        List<ModelResponse> all = all();
        if (all.size() != 1) {
            throw new AssertionError("responses: " + all.size() + " (expected: one)");
        }
        return all.getFirst();
    }

    /**
     * Waits for the end of the request and returns its responses.
     *
     * @return the responses in their order, none included
     * @throws BackendException the error with which the server ended the request
     * @throws AssertionError if the request does not end in time
     */
    public List<ModelResponse> all() {
        Received all = awaitEnd();
        if (all.error().isPresent()) {
            BackendException error = all.error().get();
            throw new BackendException(
                    error.code(), String.valueOf(error.getMessage()), error); // with the test's stack
        }
        return all.responses();
    }

    /**
     * Waits for the end of the request and returns its error.
     *
     * @return the error with which the server ended the request
     * @throws AssertionError if the request succeeds, or does not end in time
     */
    public BackendException error() {
        Received all = awaitEnd();
        return all.error()
                .orElseThrow(() -> new AssertionError(
                        "request succeeded with " + all.responses().size() + " responses (expected: an error)"));
    }

    /**
     * Waits until a decoupled model has sent some responses.
     *
     * @return all responses so far, at least as many
     * @throws AssertionError if the request ends before, or does not get them in time
     */
    public List<ModelResponse> await(int count) {
        Received some = await("response " + count, now -> now.responses().size() >= count || now.hasEnded());
        if (some.responses().size() < count) {
            throw new AssertionError("responses: " + some.responses().size() + " at the end of the request (expected: "
                    + count + "); error: " + some.error());
        }
        return some.responses();
    }

    /** Returns the errors of failed responses so far. They do not end the request of a decoupled model. */
    public List<BackendException> failed() {
        return await("time", now -> true).failedResponses();
    }

    /**
     * Says whether the request has ended.
     *
     * @return whether it has, with or without an error
     */
    public boolean hasEnded() {
        return await("time", now -> true).hasEnded();
    }

    /** Closes the responses, and later ones as they arrive. Later calls do nothing. */
    @Override
    public void close() {
        List<ModelResponse> responses;
        lock.lock();
        try {
            closed = true;
            responses = received.responses();
        } finally {
            lock.unlock();
        }
        responses.forEach(ModelResponse::close);
    }

    private Received awaitEnd() {
        return await("end", Received::hasEnded);
    }

    private Received await(String what, Predicate<Received> holds) {
        long left = timeout.toNanos();
        lock.lock();
        try {
            while (!holds.test(received)) {
                if (left <= 0) {
                    throw new AssertionError("request: no " + what + " after " + timeout + " (responses: "
                            + received.responses().size() + ")");
                }
                left = changed.awaitNanos(left);
            }
            return received;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new AssertionError("interrupted", e);
        } finally {
            lock.unlock();
        }
    }

    /** Returns whether the responses are closed. */
    private boolean change(UnaryOperator<Received> next) {
        lock.lock();
        try {
            received = next.apply(received);
            changed.signalAll();
            return closed;
        } finally {
            lock.unlock();
        }
    }

    /** Receives the responses on threads of the server. */
    private final class Recording implements ModelResponseObserver {
        @Override
        public void onResponse(ModelResponse response) {
            if (change(now -> now.with(response))) {
                response.close();
            }
        }

        @Override
        public void onFailedResponse(BackendException failure) {
            change(now -> now.withFailedResponse(failure));
        }

        @Override
        public void onCompleted() {
            change(now -> now.ended(Optional.empty()));
        }

        @Override
        public void onError(BackendException failure) {
            change(now -> now.ended(Optional.of(failure)));
        }
    }
}
