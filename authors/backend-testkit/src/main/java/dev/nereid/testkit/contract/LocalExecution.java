package dev.nereid.testkit.contract;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ModelInstance;
import dev.nereid.testkit.FakeBatch;
import dev.nereid.testkit.FakeRequest;
import dev.nereid.testkit.FakeSender;
import dev.nereid.testkit.LeakCheckingMemory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/**
 * One execution of a batch, with the checks that every execution has to pass. Confined to the thread of the instance.
 *
 * <p>Inputs and outputs lie in memory that detects leaks and use after the end; everything is freed at the end of the
 * execution, and nothing may be left open.
 */
final class LocalExecution implements AutoCloseable {
    private static final long PAUSE_NANOS = 50_000;

    private final LeakCheckingMemory memory;
    private final LocalRequests requests;
    private final FakeBatch batch;
    private final LocalResponses responses;
    private final Duration timeout;

    /**
     * Prepares an execution.
     *
     * @param examples the requests, at least one
     * @param nulls the places of null requests
     * @param memory allocates inputs and outputs; closed at the end
     */
    LocalExecution(ContractModel model, List<ContractExample> examples, Set<Integer> nulls, LeakCheckingMemory memory) {
        this.memory = memory;
        timeout = model.timeout();
        requests = new LocalRequests(model, examples, nulls, memory);
        batch = requests.batch();
        responses = new LocalResponses(model.settings(), requests, batch);
    }

    /** Cancels all requests, as their clients would. */
    void cancel() {
        requests.all().forEach(FakeRequest::cancel);
    }

    /** Sets whether the clients read their responses. */
    void setReady(boolean ready) {
        requests.senders().forEach(sender -> sender.setReady(ready));
    }

    /**
     * Runs the execution up to its end, and frees everything.
     *
     * @param during runs after the return of the instance, before deferred work is awaited
     * @return the response to each request
     * @throws AssertionError if the instance violates the contract
     */
    List<LocalResponse> run(ModelInstance instance, Runnable during) {
        Optional<Throwable> violation = Optional.empty();
        try {
            return execute(instance, during);
        } catch (AssertionError e) {
            violation = Optional.of(e);
            throw e;
        } finally {
            close(violation);
        }
    }

    /**
     * Runs the execution and keeps its outputs, as the server does for clients that read slowly. Afterwards {@link
     * #checkUnchanged} and then {@link #close()} are called.
     *
     * @return the response to each request
     * @throws AssertionError if the instance violates the contract; everything is freed then
     */
    List<LocalResponse> runAndHold(ModelInstance instance) {
        boolean held = false;
        try {
            List<LocalResponse> returned = execute(instance, () -> {});
            requests.poison(batch);
            held = true;
            return returned;
        } finally {
            if (!held) {
                close(Optional.of(new AssertionError("failed before")));
            }
        }
    }

    private List<LocalResponse> execute(ModelInstance instance, Runnable during) {
        Optional<BackendException> failure = execute(instance, batch);
        failure.ifPresent(requests::fail);
        during.run();
        awaitEnd();
        List<LocalResponse> all = new ArrayList<>();
        for (int i = 0; i < requests.all().size(); i++) {
            requests.checkInputs(i);
            all.add(responses.response(i));
        }
        return all;
    }

    /** Fails if outputs have changed since they were returned. */
    void checkUnchanged(List<LocalResponse> before) {
        responses.checkUnchanged(before);
    }

    private static Optional<BackendException> execute(ModelInstance instance, FakeBatch batch) {
        try {
            ContextLoader.keeping("ModelInstance.execute", () -> instance.execute(batch));
            return Optional.empty();
        } catch (BackendException e) {
            return Optional.of(e);
        } catch (RuntimeException e) {
            throw new AssertionError(
                    "execute threw " + e + " (expected: BackendException, or the failure of one" + " request)", e);
        }
    }

    private void awaitEnd() {
        try {
            if (!batch.awaitEnd(timeout)) {
                throw new AssertionError("deferred execution: open after " + timeout + " (expected: complete)");
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new AssertionError("interrupted", e);
        }
        for (int i = 0; i < requests.senders().size(); i++) {
            FakeSender sender = requests.senders().get(i);
            FakeRequest request = requests.all().get(i);
            // The server ends a request if the backend never asked for its sender.
            await(
                    () -> sender.hasEnded()
                            || !request.isSenderRequested()
                            || request.isRescheduled()
                            || (request.failure().isPresent()
                                    && sender.failure().isEmpty()),
                    "a sender of a request was not ended",
                    "ResponseSender.complete or fail",
                    i);
            await(
                    () -> request.openLeases() == 0,
                    "a lease on the inputs of a request was not ended",
                    "to run what InferenceRequest.leaseInputs returned",
                    i);
        }
    }

    private void await(BooleanSupplier ended, String problem, String expected, int place) {
        long start = System.nanoTime();
        while (!ended.getAsBoolean()) {
            if (System.nanoTime() - start > timeout.toNanos()) {
                throw new AssertionError(
                        "request " + place + ": " + problem + " after " + timeout + " (expected: " + expected + ")");
            }
            LockSupport.parkNanos(PAUSE_NANOS);
        }
    }

    /** Frees everything as the server does, and fails if something is open. Only after {@link #runAndHold}. */
    @Override
    public void close() {
        close(Optional.empty());
    }

    private void close(Optional<Throwable> violation) {
        try {
            batch.close();
            requests.close();
            memory.close();
        } catch (AssertionError e) {
            if (violation.isEmpty()) {
                throw e;
            }
            violation.get().addSuppressed(e);
        }
    }
}
