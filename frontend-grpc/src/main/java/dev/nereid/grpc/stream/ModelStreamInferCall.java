package dev.nereid.grpc.stream;

import dev.nereid.api.InferenceException;
import dev.nereid.api.RequestProtocol;
import dev.nereid.grpc.connection.LargeMessageReader;
import dev.nereid.grpc.connection.Parsed;
import dev.nereid.grpc.wire.AssembledRequest;
import dev.nereid.grpc.wire.CallContext;
import dev.nereid.grpc.wire.GrpcErrors;
import dev.nereid.grpc.wire.InferMessage;
import dev.nereid.grpc.wire.InferResponseMessage;
import dev.nereid.grpc.wire.RequestNames;
import dev.nereid.grpc.wire.SharedTensors;
import io.grpc.ServerCall;
import java.util.Optional;

/**
 * Handles one {@code ModelStreamInfer} call: submits its requests and passes their responses to a {@link StreamWriter}.
 * Confined to the event loop of its connection, except for {@link #convert} and {@link #discard}, which workers call.
 */
final class ModelStreamInferCall extends ServerCall.Listener<Parsed<InferMessage>>
        implements LargeMessageReader.Callback<InferMessage, PreparedRequest> {
    private static final RequestNames NO_NAMES = new RequestNames("", "", "");

    private final ServerCall<Parsed<InferMessage>, InferResponseMessage> call;
    private final StreamContext stream;
    private final CallContext context;
    private final StreamOutbox outbox;
    private final StreamWriter writer;

    // Whether a worker reads a message, and whether the client has half-closed meanwhile.
    private boolean isReading;
    private boolean isHalfClosed;

    ModelStreamInferCall(
            ServerCall<Parsed<InferMessage>, InferResponseMessage> call,
            StreamContext stream,
            CallContext context,
            boolean isStrict) {
        this.call = call;
        this.stream = stream;
        this.context = context;
        this.outbox = new StreamOutbox(stream.limits());
        this.writer = new StreamWriter(call, outbox, stream, context, isStrict);
    }

    @Override
    public void onMessage(Parsed<InferMessage> parsed) {
        if (parsed instanceof Parsed.Deferred<InferMessage> deferred) {
            isReading = true;
            LargeMessageReader.read(deferred, call.getAttributes(), this);
            return;
        }
        outbox.onRead();
        switch (parsed) {
            case Parsed.Deferred<InferMessage> _ -> throw new IllegalStateException("a worker reads it");
            case Parsed.Failed<InferMessage>(InferenceException failure) -> refuse(NO_NAMES, false, failure);
            case Parsed.Ok<InferMessage>(InferMessage message) -> {
                try (message) {
                    take(convert(message));
                } catch (OutOfMemoryError failure) {
                    refuse(NO_NAMES, false, GrpcErrors.outOfMemory(failure));
                }
            }
        }
        writer.drain();
    }

    @Override
    public PreparedRequest convert(InferMessage message) {
        return PreparedRequest.of(message, stream, context);
    }

    @Override
    public void discard(PreparedRequest prepared) {
        AssembledRequest assembled = prepared.assembled();
        if (assembled != null) {
            assembled.request().release().run();
        }
    }

    @Override
    public void fail(InferenceException error) {
        writer.fail(error);
    }

    @Override
    public void onResult(LargeMessageReader.Result<PreparedRequest> result) {
        isReading = false;
        outbox.onRead();
        switch (result) {
            case LargeMessageReader.Failed<PreparedRequest>(InferenceException failure) ->
                refuse(NO_NAMES, false, failure);
            case LargeMessageReader.Done<PreparedRequest>(PreparedRequest prepared) -> take(prepared);
        }
        if (isHalfClosed) {
            outbox.halfClose();
        }
        writer.drain();
    }

    private void take(PreparedRequest prepared) {
        AssembledRequest assembled = prepared.assembled();
        if (prepared.error() != null) {
            refuse(prepared.names(), prepared.isDecoupled(), prepared.error());
        } else if (assembled != null) {
            Optional<StreamedRequest> request =
                    register(prepared.names(), prepared.isDecoupled(), prepared.bytes(), assembled.shared());
            if (request.isPresent()) {
                request.get().submit(stream.server(), assembled);
            } else {
                assembled.request().release().run();
            }
        }
    }

    private void refuse(RequestNames names, boolean isDecoupled, InferenceException error) {
        InferenceException refusal = stream.server().refusals().refuse(RequestProtocol.GRPC, error);
        register(names, isDecoupled, 0, SharedTensors.NONE).ifPresent(request -> request.refuse(refusal));
    }

    private Optional<StreamedRequest> register(
            RequestNames names, boolean isDecoupled, long bytes, SharedTensors shared) {
        StreamedRequest request = new StreamedRequest(writer, names, isDecoupled, shared);
        Optional<StreamOutbox.Lane> lane = outbox.open(request, isDecoupled, bytes);
        lane.ifPresent(request::assignLane);
        return lane.map(_ -> request);
    }

    @Override
    public void onReady() {
        writer.drain();
    }

    @Override
    public void onHalfClose() {
        if (isReading) {
            isHalfClosed = true;
            return;
        }
        outbox.halfClose();
        writer.drain();
    }

    @Override
    public void onCancel() {
        writer.cancel();
    }

    @Override
    public void onComplete() {
        writer.complete();
    }

    /** Requests the first message. */
    void start() {
        writer.drain();
    }
}
