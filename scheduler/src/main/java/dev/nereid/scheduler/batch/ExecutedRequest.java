package dev.nereid.scheduler.batch;

import dev.nereid.api.Quoted;
import dev.nereid.api.statistics.FailureReason;
import dev.nereid.scheduler.request.CheckedRequest;
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
 * A request as its backend sees it during one execution. Confined to the execution, as the SPI says, but for what the
 * SPI lets any thread do, which goes straight to the {@link ScheduledRequest}.
 */
final class ExecutedRequest implements InferenceRequest {
    private final ExecutionScope scope;
    private final ScheduledRequest request;
    private final @Nullable GatheredInputs gathered;
    private final @Nullable BatchOutputs outputs;
    private @Nullable ResponseBuilder builder;

    /** What is to be told at the end of the execution. */
    private @Nullable ResponseEvent settled;

    /** Volatile for threads that use a sender; nothing but the exception for wrong use depends on it. */
    private volatile boolean finished;

    /**
     * Shows a request to a backend.
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

    /** Returns the call, as long as the backend may use it. */
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
        ResponseDelivery answers = request.delivery();
        ResponseChannel opened = answers.channel();
        if (opened == null) {
            opened = new ResponseStream(scope, request, gathered);
            answers.open(opened);
        }
        return opened;
    }

    /** Returns the response that is sent when the execution is finished. */
    ResponseBuilder builder() {
        if (builder == null) {
            builder = new ResponseBuilder(scope, request, gathered, outputs);
        }
        return builder;
    }

    /** Says whether an output was put into the response. */
    boolean has(OutputSpec output) {
        return builder != null && builder.has(output);
    }

    /** Answers with an error, unless the request was answered or goes on as a stream. */
    void failUnlessStreaming(ResponseEvent.Failure failure) {
        if (!request.delivery().isStreaming()) {
            request.complete(failure);
        }
    }

    /**
     * Settles how the request ends at the end of its execution, unless it was answered or goes on as a stream. To be
     * followed by {@link #finish}.
     *
     * @param failure what failed, or {@code null}
     * @param index the place of the request in the batch
     * @param firstItem the place of the first item of the request in the batch
     * @param tally where the outcome is counted
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
            request.log("answering failed", e);
            BackendException error = SchedulerErrors.unexpected(request.model().settings(), e);
            settled = request.settle(ResponseEvent.Failure.of(error, FailureReason.OTHER));
        }
        if (settled != null) {
            request.count(settled, tally);
        }
    }

    /** Tells what was settled, and ends the use of the request's inputs by the execution. */
    void finish() {
        try {
            if (settled != null) {
                request.deliver(settled);
            }
        } catch (RuntimeException | Error e) { // the other requests are to be told all the same
            request.log("answering failed", e);
        } finally {
            finished = true;
            if (builder != null) {
                builder.discard();
            }
            request.release();
        }
    }

    private ResponseEvent terminalEvent(int index, int firstItem) throws BackendException {
        if (request.isCancelled()) {
            return ResponseEvent.END; // told as withdrawn
        }
        ResponseBuilder response = builder();
        if (outputs != null) {
            outputs.putParts(index, firstItem, response);
        }
        return response.isEmpty() && request.model().settings().decoupled() ? ResponseEvent.END : response.finish(true);
    }
}
