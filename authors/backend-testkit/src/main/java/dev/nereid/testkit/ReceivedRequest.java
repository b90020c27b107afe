package dev.nereid.testkit;

import dev.nereid.api.Cancellation;
import dev.nereid.api.InferRequest;
import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.NamedTensor;
import dev.nereid.api.ResponseFlow;
import dev.nereid.api.ResponseObserver;
import dev.nereid.api.TensorLease;
import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A request received by a {@link FakeInferenceServer}, completed by the test. Safe for use by any thread, except that
 * responses to one request are sent one at a time. The first terminal response counts; later ones are ignored.
 */
public final class ReceivedRequest implements Cancellation {
    private final InferRequest request;
    private final ResponseObserver observer;
    private final AtomicBoolean completed = new AtomicBoolean();
    private final CountDownLatch cancelled = new CountDownLatch(1);
    /**
     * The number of references. There is one for the request until it is complete, and one for each response and lease
     * until it is closed.
     */
    private final AtomicInteger references = new AtomicInteger(1);

    ReceivedRequest(InferRequest request, ResponseObserver observer) {
        this.request = request;
        this.observer = observer;
    }

    /**
     * Returns the request.
     *
     * @return the request; its memory may be read until it is complete and every response is closed
     */
    public InferRequest request() {
        return request;
    }

    /**
     * Returns an input as a tensor.
     *
     * @param index its position in the request
     * @param name the name of the result
     * @return a view of the input
     * @throws InferenceException with {@link ErrorCode#INVALID_ARGUMENT} if type, shape and size contradict each other
     */
    public NamedTensor input(int index, String name) {
        var input = request.inputs().get(index);
        try {
            DataType type = DataType.ofName(input.datatype()).orElseThrow();
            return new NamedTensor(name, Tensor.of(type, Shape.of(input.dims()), input.data(), input.place()));
        } catch (RuntimeException e) {
            throw new InferenceException(
                    ErrorCode.INVALID_ARGUMENT,
                    "fake model: " + input + " with " + input.data().byteSize() + " bytes");
        }
    }

    /** Responds with the requested inputs, each named OUTPUT instead of INPUT. */
    public void respondWithInputs() {
        List<NamedTensor> outputs = new ArrayList<>(request.inputs().size());
        try {
            for (int i = 0; i < request.inputs().size(); i++) {
                String name = request.inputs().get(i).name().replace("INPUT", "OUTPUT");
                if (request.outputs().isEmpty()
                        || request.outputs().stream()
                                .anyMatch(output -> output.name().equals(name))) {
                    outputs.add(input(i, name));
                }
            }
        } catch (InferenceException e) {
            fail(e.code(), e.publicMessage());
            return;
        }
        respond(outputs, Map.of(), true);
    }

    /**
     * Sends a response.
     *
     * @param outputs the outputs, in memory of the inputs or of the test, which keeps it valid
     * @param isFinal whether this response ends the request
     */
    public void respond(List<NamedTensor> outputs, Map<String, ParameterValue> parameters, boolean isFinal) {
        if (isFinal ? completed.compareAndSet(false, true) : !completed.get()) {
            references.incrementAndGet();
            observer.onResponse(new Response(this, List.copyOf(outputs), parameters, isFinal));
            if (isFinal) {
                release();
            }
        }
    }

    /**
     * Sends a failed response, after which others may follow.
     *
     * @param message the text for the client
     */
    public void respondWithError(ErrorCode code, String message) {
        if (!completed.get()) {
            observer.onFailedResponse(new InferenceException(code, message));
        }
    }

    /** Ends the request without a response. */
    public void end() {
        if (completed.compareAndSet(false, true)) {
            observer.onCompleted();
            release();
        }
    }

    /**
     * Ends the request with an error.
     *
     * @param message the text for the client
     */
    public void fail(ErrorCode code, String message) {
        if (completed.compareAndSet(false, true)) {
            observer.onError(new InferenceException(code, message));
            release();
        }
    }

    /**
     * Refuses the request. Called by the code of a model that responds, while the front end waits for it.
     *
     * @param message the text for the client
     */
    public void refuse(ErrorCode code, String message) {
        if (completed.compareAndSet(false, true)) {
            observer.onRefused(new InferenceException(code, message));
            release();
        }
    }

    /**
     * Returns the number of responses and leases of outputs that the front end holds.
     *
     * @return the responses that were sent and not closed, and the leases that were not closed
     */
    public int openResponses() {
        return Math.max(0, references.get() - (completed.get() ? 0 : 1));
    }

    /**
     * Returns the flow of responses.
     *
     * @return the flow of the front end
     */
    public ResponseFlow flow() {
        return observer.flow();
    }

    /**
     * Says whether the front end cancelled the request.
     *
     * @return whether {@link #cancel()} was called
     */
    public boolean isCancelled() {
        return cancelled.getCount() == 0;
    }

    /**
     * Waits until the front end cancels the request.
     *
     * @param timeout the limit on the wait
     * @return whether {@link #cancel()} was called
     * @throws InterruptedException if the thread is interrupted
     */
    public boolean awaitCancel(Duration timeout) throws InterruptedException {
        return cancelled.await(timeout.toNanos(), TimeUnit.NANOSECONDS);
    }

    @Override
    public void cancel() {
        cancelled.countDown();
        fail(ErrorCode.CANCELLED, "request was cancelled");
    }

    private void release() {
        if (references.decrementAndGet() == 0) {
            request.release().run();
        }
    }

    /** A response, confined to its observer except {@link #close()}. */
    private record Response(
            ReceivedRequest owner,
            List<NamedTensor> outputs,
            Map<String, ParameterValue> parameters,
            boolean isFinal,
            AtomicBoolean closed)
            implements InferResponse {
        Response(
                ReceivedRequest owner,
                List<NamedTensor> outputs,
                Map<String, ParameterValue> parameters,
                boolean isFinal) {
            this(owner, outputs, parameters, isFinal, new AtomicBoolean());
        }

        @Override
        public String model() {
            return owner.request.model().name();
        }

        @Override
        public long version() {
            return Math.max(1, owner.request.model().version());
        }

        @Override
        public String id() {
            return owner.request.id();
        }

        @Override
        public TensorLease lease(int output) {
            Tensor leased = outputs.get(output).tensor();
            if (closed.get()) {
                throw new IllegalStateException("response: closed (expected: leased before its close)");
            }
            owner.references.incrementAndGet();
            return new Lease(owner, leased, new AtomicBoolean());
        }

        @Override
        public void close() {
            if (closed.compareAndSet(false, true)) {
                owner.release();
            }
        }
    }

    /** A lease of an output, which holds a reference to the request. Safe for use by any thread. */
    private record Lease(ReceivedRequest owner, Tensor tensor, AtomicBoolean closed) implements TensorLease {
        @Override
        public void close() {
            if (closed.compareAndSet(false, true)) {
                owner.release();
            }
        }
    }
}
