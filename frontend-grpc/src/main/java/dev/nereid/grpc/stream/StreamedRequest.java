package dev.nereid.grpc.stream;

import dev.nereid.api.Cancellation;
import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InferenceServer;
import dev.nereid.api.RequestProtocol;
import dev.nereid.api.ResponseFlow;
import dev.nereid.api.ResponseObserver;
import dev.nereid.grpc.wire.AssembledRequest;
import dev.nereid.grpc.wire.RequestFailures;
import dev.nereid.grpc.wire.RequestNames;
import dev.nereid.grpc.wire.SharedTensors;
import dev.nereid.spi.ErrorCode;
import org.jspecify.annotations.Nullable;

/**
 * One request of a stream and the observer of its responses. Submitted on the event loop of its connection; responses
 * arrive on any thread.
 *
 * <p>A cancellation handle that arrives after the request was cancelled is used at once: both sides write first and
 * read then.
 */
final class StreamedRequest implements ResponseObserver {
    private final StreamWriter writer;
    private final RequestNames names;
    private final boolean isDecoupled;
    private final SharedTensors shared;

    // Written before the request is submitted.
    private StreamOutbox.@Nullable Lane lane;
    private @Nullable StreamFlow flow;
    private boolean emptyFinalResponse;

    private volatile @Nullable Cancellation cancellation;
    private volatile boolean cancelled;

    StreamedRequest(StreamWriter writer, RequestNames names, boolean isDecoupled, SharedTensors shared) {
        this.writer = writer;
        this.names = names;
        this.isDecoupled = isDecoupled;
        this.shared = shared;
    }

    RequestNames names() {
        return names;
    }

    SharedTensors shared() {
        return shared;
    }

    /** Sets the lane of the request. Called once, before any other method. */
    void assignLane(StreamOutbox.Lane assigned) {
        lane = assigned;
        flow = isDecoupled ? new StreamFlow(writer, assigned) : null;
    }

    /** Resumes the model if it waits for its flow and the flow is open. */
    void checkFlow() {
        StreamFlow waiting = flow;
        if (waiting != null) {
            waiting.check();
        }
    }

    /** Submits the request to the server, which owns its memory from now on. */
    void submit(InferenceServer server, AssembledRequest assembled) {
        emptyFinalResponse = assembled.emptyFinalResponse();
        Cancellation handle = server.infer(assembled.request(), this);
        cancellation = handle;
        if (cancelled) {
            handle.cancel();
        }
    }

    /** Responds with an error, as to a request that was never submitted. */
    void refuse(InferenceException error) {
        RequestFailures.log(names.id(), names.model(), error);
        offer(new OutgoingMessage.Failure(error, true, true));
    }

    void cancel() {
        cancelled = true;
        Cancellation handle = cancellation;
        if (handle != null) {
            handle.cancel();
        }
    }

    @Override
    public void onResponse(InferResponse response) {
        if (!offer(OutgoingMessage.Response.of(response, shared))) {
            response.close();
        }
    }

    @Override
    public void onCompleted() {
        if (isDecoupled) {
            offer(new OutgoingMessage.End(emptyFinalResponse));
        } else {
            onError(new InferenceException(ErrorCode.INTERNAL, "expected a single response, got 0"));
        }
    }

    @Override
    public void onFailedResponse(InferenceException error) {
        fail(error, false);
    }

    @Override
    public void onError(InferenceException error) {
        fail(error, true);
    }

    private void fail(InferenceException error, boolean isLast) {
        RequestFailures.log(names.id(), names.model(), error);
        offer(new OutgoingMessage.Failure(error, false, isLast));
    }

    @Override
    public RequestProtocol protocol() {
        return RequestProtocol.GRPC;
    }

    @Override
    public ResponseFlow flow() {
        StreamFlow own = flow;
        return own == null ? ResponseFlow.OPEN : own;
    }

    @Override
    public void onRefused(InferenceException error) {
        refuse(error);
    }

    private boolean offer(OutgoingMessage outgoing) {
        return writer.offer(lane(), outgoing);
    }

    private StreamOutbox.Lane lane() {
        StreamOutbox.Lane assigned = lane;
        if (assigned == null) {
            throw new IllegalStateException("lane: none (expected: assigned first)");
        }
        return assigned;
    }
}
