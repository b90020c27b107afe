package dev.nereid.scheduler.batch;

import dev.nereid.api.Quoted;
import dev.nereid.api.statistics.FailureReason;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.request.FinishedResponse;
import dev.nereid.scheduler.request.NamedTensors;
import dev.nereid.scheduler.request.ResponseChannel;
import dev.nereid.scheduler.request.ResponseDelivery;
import dev.nereid.scheduler.request.ResponseEvent;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.scheduler.request.SchedulerErrors;
import dev.nereid.scheduler.statistics.ExecutionTally;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.CancelHook;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.ParameterValue;
import dev.nereid.spi.ResponseSender;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.Tensor;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/**
 * A request as its backend sees it during one execution. Confined to the execution, except for methods that the SPI
 * allows for any thread; these delegate to the {@link ScheduledRequest}.
 */
final class ExecutedRequest implements InferenceRequest {
    private final ExecutionScope scope;
    private final ScheduledRequest request;
    private final @Nullable GatheredInputs gathered;
    private final @Nullable BatchOutputs outputs;
    private @Nullable ResponseBuilder builder;

    /** The event to deliver at the end of the execution. */
    private @Nullable ResponseEvent settled;

    /**
     * Whether the request is finished. The field is volatile for threads that use a sender; only the exception for
     * wrong use depends on it.
     */
    private volatile boolean finished;

    /**
     * Creates the view of a request.
     *
     * @param request the request
     * @param gathered the inputs of its batch, or {@code null} for a batch of one that derives none
     * @param outputs the outputs of its batch, or {@code null} for a batch of one
     */
    ExecutedRequest(
            ExecutionScope scope,
            ScheduledRequest request,
            @Nullable GatheredInputs gathered,
            @Nullable BatchOutputs outputs) {
        this.scope = scope;
        this.request = request;
        this.gathered = gathered;
        this.outputs = outputs;
    }

    /** Returns the checked request; throws if the backend may not use it any more. */
    private CheckedRequest checked() {
        if (finished && !request.delivery().isStreamOpen()) {
            throw new IllegalStateException("request '"
                    + Quoted.text(request.checked().id()) + "': its execution is finished (expected: not yet)");
        }
        return request.checked();
    }

    @Override
    public String id() {
        return checked().id();
    }

    @Override
    public int batchSize() {
        return checked().batchSize();
    }

    @Override
    public List<String> inputs() {
        return NamedTensors.names(checked().inputs());
    }

    @Override
    public Optional<Tensor> input(String name) {
        checked();
        return Optional.ofNullable(NamedTensors.find(request.inputs(), name));
    }

    @Override
    public List<String> requestedOutputs() {
        return checked().outputs().names();
    }

    @Override
    public Map<String, ParameterValue> parameters() {
        return checked().parameters();
    }

    @Override
    public Optional<Sequence> sequence() {
        return checked().options().sequence();
    }

    @Override
    public long priority() {
        return checked().options().priority();
    }

    @Override
    public long timeoutMicros() {
        return checked().options().timeoutMicros();
    }

    @Override
    public OptionalLong deadlineNanos() {
        return checked().options().deadlineNanos();
    }

    @Override
    public boolean isCancelled() {
        return request.isCancelled();
    }

    @Override
    public CancelHook onCancel(Runnable action) {
        return request.onCancel(action);
    }

    @Override
    public InferenceResponse response() {
        if (request.model().settings().decoupled()) {
            throw new IllegalStateException("response: the model is decoupled (expected: sender)");
        }
        checked();
        return builder();
    }

    @Override
    public void fail(BackendException error) {
        request.fail(error);
    }

    @Override
    public ResponseSender sender() {
        if (!request.model().settings().decoupled()) {
            throw new IllegalStateException("sender: the model is not decoupled (expected: response)");
        }
        checked();
        ResponseDelivery delivery = request.delivery();
        ResponseChannel opened = delivery.channel();
        if (opened == null) {
            opened = new ResponseStream(scope, request, gathered);
            delivery.open(opened);
        }
        return opened;
    }

    /** Returns the builder of the response that is sent when the execution is finished. */
    ResponseBuilder builder() {
        if (builder == null) {
            builder = new ResponseBuilder(scope, request, gathered, outputs);
        }
        return builder;
    }

    /** Returns whether an output was added to the response. */
    boolean has(OutputSpec output) {
        return builder != null && builder.has(output);
    }

    /** Completes the request with an error, unless it is completed or streaming. */
    void failUnlessStreaming(ResponseEvent.Failure failure) {
        if (!request.delivery().isStreaming()) {
            request.complete(failure);
        }
    }

    /**
     * Decides how the request ends at the end of its execution. Has no effect on a request that is completed or
     * streaming. {@link #finish} has to follow.
     *
     * @param failure the failure of the execution, or {@code null}
     * @param index the index of the request in the batch
     * @param firstItem the index of the first item of the request in the batch
     * @param tally counts the outcome
     */
    void settle(ResponseEvent.@Nullable Failure failure, int index, int firstItem, ExecutionTally tally) {
        if (request.isCompleted() || request.delivery().isStreaming()) {
            return;
        }
        try {
            settled = request.settle(failure == null ? terminalEvent(index, firstItem) : failure);
        } catch (BackendException e) {
            settled = request.settle(ResponseEvent.Failure.of(e, FailureReason.BACKEND));
        } catch (RuntimeException | Error e) {
            request.log("completion of request failed", e);
            BackendException error = SchedulerErrors.unexpected(request.model().settings(), e);
            settled = request.settle(ResponseEvent.Failure.of(error, FailureReason.OTHER));
        }
        if (settled != null) {
            request.count(settled, tally);
        }
    }

    /** Delivers the settled event, and releases the execution's reference to the request. */
    void finish() {
        try {
            if (settled != null) {
                request.deliver(settled);
            }
        } catch (RuntimeException | Error e) { // the other requests complete all the same
            request.log("completion of request failed", e);
        } finally {
            finished = true;
            if (builder != null) {
                builder.discard();
            }
            if (settled instanceof FinishedResponse) {
                request.freeInputs();
            }
            request.release();
        }
    }

    private ResponseEvent terminalEvent(int index, int firstItem) throws BackendException {
        if (request.isCancelled()) {
            return ResponseEvent.END; // delivered as cancelled
        }
        ResponseBuilder response = builder();
        if (outputs != null) {
            outputs.putParts(index, firstItem, response);
        }
        return response.isEmpty() && request.model().settings().decoupled() ? ResponseEvent.END : response.finish(true);
    }
}
