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
import java.util.function.Predicate;
import java.util.function.UnaryOperator;

/** A request that was sent to a {@link LocalServer}. Guarded by its own lock; methods that return results wait for them. */
public final class PendingRequest {
    /**
     * What has arrived so far. Immutable.
     *
     * @param responses the responses
     * @param failedResponses the errors of failed responses
     * @param error the error that ended the request
     * @param hasEnded whether the request has ended
     */
    private record Received(
            List<LocalOutputs> responses,
            List<InferenceException> failedResponses,
            Optional<InferenceException> error,
            boolean hasEnded) {
        static final Received NOTHING = new Received(List.of(), List.of(), Optional.empty(), false);

        Received with(LocalOutputs response, boolean isFinal) {
            return new Received(plus(responses, response), failedResponses, error, isFinal);
        }

        Received withFailedResponse(InferenceException failure) {
            return new Received(responses, plus(failedResponses, failure), error, hasEnded);
        }

        Received ended(Optional<InferenceException> failure) {
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
    private final ResponseObserver observer = new Recording();

    @GuardedBy("lock")
    private Received received = Received.NOTHING;

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
        Received all = awaitEnd();
        if (all.error().isPresent()) {
            throw all.error().get().withPrefix(""); // with the stack of the test
        }
        return all.responses();
    }

    /**
     * Waits for the end of the request and returns its error.
     *
     * @return the error with which the server ended the request
     * @throws AssertionError if the request succeeds, or does not end in time
     */
    public InferenceException error() {
        Received all = awaitEnd();
        return all.error()
                .orElseThrow(() ->
                        new AssertionError("request succeeded with " + all.responses() + " (expected: an error)"));
    }

    /**
     * Waits until a decoupled model has sent some responses.
     *
     * @param count the number of responses
     * @return all responses so far, at least as many
     * @throws AssertionError if the request ends before, or does not get them in time
     */
    public List<LocalOutputs> awaitResponses(int count) {
        Received some = await("response " + count, now -> now.responses().size() >= count || now.hasEnded());
        if (some.responses().size() < count) {
            throw new AssertionError("responses: " + some.responses().size() + " at the end of the request (expected: "
                    + count + "); error: " + some.error());
        }
        return some.responses();
    }

    /**
     * Returns the errors of failed responses so far. They do not end the request of a decoupled model.
     *
     * @return the errors
     */
    public List<InferenceException> failedResponses() {
        return await("time", now -> true).failedResponses();
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
        return await("time", now -> true).hasEnded();
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

    private void change(UnaryOperator<Received> next) {
        lock.lock();
        try {
            received = next.apply(received);
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
                boolean isFinal = response.isFinal();
                change(now -> now.with(outputs, isFinal));
            }
        }

        @Override
        public void onFailedResponse(InferenceException failure) {
            change(now -> now.withFailedResponse(failure));
        }

        @Override
        public void onCompleted() {
            change(now -> now.ended(Optional.empty()));
        }

        @Override
        public void onError(InferenceException failure) {
            change(now -> now.ended(Optional.of(failure)));
        }
    }
}
