package dev.nereid.grpc;

import dev.nereid.api.InferenceException;
import dev.nereid.api.RequestProtocol;
import io.grpc.ServerCall;
import java.util.Optional;

/**
 * Handles one {@code ModelStreamInfer} call: submits its requests and gives their responses to a {@link StreamWriter}.
 * Confined to the event loop of its connection, but for {@link #make} and {@link #discard}, which workers call.
 */
final class ModelStreamInferCall extends ServerCall.Listener<Parsed<InferMessage>>
        implements InferMessages.Reading<InferMessage, PreparedRequest> {
    private static final RequestNames NAMELESS = new RequestNames("", "", "");

    private final ServerCall<Parsed<InferMessage>, InferResponseMessage> call;
    private final StreamContext stream;
    private final CallOrigin origin;
    private final StreamOutbox outbox;
    private final StreamWriter writer;

    // Whether a worker reads a message, and whether the client has half-closed meanwhile.
    private boolean isReading;
    private boolean isHalfClosed;

    ModelStreamInferCall(
            ServerCall<Parsed<InferMessage>, InferResponseMessage> call,
            StreamContext stream,
            CallOrigin origin,
            boolean isStrict) {
        this.call = call;
        this.stream = stream;
        this.origin = origin;
        this.outbox = new StreamOutbox(stream.limits());
        this.writer = new StreamWriter(call, outbox, stream, origin, isStrict);
    }

    @Override
    public void onMessage(Parsed<InferMessage> parsed) {
        if (parsed instanceof Parsed.Later<InferMessage> later) {
            isReading = true;
            InferMessages.read(later, call.getAttributes(), this);
            return;
        }
        outbox.hasRead();
        switch (parsed) {
            case Parsed.Later<InferMessage> _ -> throw new IllegalStateException("a worker reads it");
            case Parsed.Failed<InferMessage>(InferenceException failure) -> refuse(NAMELESS, false, failure);
            case Parsed.Ok<InferMessage>(InferMessage message) -> {
                try (message) {
                    take(make(message));
                } catch (OutOfMemoryError failure) {
                    refuse(NAMELESS, false, GrpcErrors.outOfMemory(failure));
                }
            }
        }
        writer.drain();
    }

    @Override
    public PreparedRequest make(InferMessage message) {
        return PreparedRequest.of(message, stream, origin);
    }

    @Override
    public void discard(PreparedRequest prepared) {
        AssembledCall assembled = prepared.assembled();
        if (assembled != null) {
            assembled.call().release().run();
        }
    }

    @Override
    public void fail(InferenceException error) {
        writer.fail(error);
    }

    @Override
    public void take(InferMessages.Result<PreparedRequest> result) {
        isReading = false;
        outbox.hasRead();
        switch (result) {
            case InferMessages.Failed<PreparedRequest>(InferenceException failure) -> refuse(NAMELESS, false, failure);
            case InferMessages.Done<PreparedRequest>(PreparedRequest prepared) -> take(prepared);
        }
        if (isHalfClosed) {
            outbox.halfClose();
        }
        writer.drain();
    }

    private void take(PreparedRequest prepared) {
        AssembledCall assembled = prepared.assembled();
        if (prepared.error() != null) {
            refuse(prepared.names(), prepared.isDecoupled(), prepared.error());
        } else if (assembled != null) {
            Optional<StreamedRequest> request =
                    enter(prepared.names(), prepared.isDecoupled(), prepared.bytes(), assembled.shared());
            if (request.isPresent()) {
                request.get().ask(stream.server(), assembled);
            } else {
                assembled.call().release().run();
            }
        }
    }

    private void refuse(RequestNames names, boolean isDecoupled, InferenceException error) {
        InferenceException told = stream.server().refusals().refuse(RequestProtocol.GRPC, error);
        enter(names, isDecoupled, 0, SharedTensors.NONE).ifPresent(request -> request.refuse(told));
    }

    private Optional<StreamedRequest> enter(RequestNames names, boolean isDecoupled, long bytes, SharedTensors shared) {
        StreamedRequest request = new StreamedRequest(writer, names, isDecoupled, shared);
        Optional<StreamOutbox.Lane> lane = outbox.open(request, isDecoupled, bytes);
        lane.ifPresent(request::enter);
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

    /** Reads the first message. */
    void begin() {
        writer.drain();
    }
}
