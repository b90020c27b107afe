package dev.nereid.grpc.service;

import dev.nereid.api.Cancellation;
import dev.nereid.api.InferRequest;
import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InferenceServer;
import dev.nereid.api.ModelRef;
import dev.nereid.api.RequestProtocol;
import dev.nereid.api.ResponseObserver;
import dev.nereid.grpc.connection.GuardedConnection;
import dev.nereid.grpc.connection.LargeMessageReader;
import dev.nereid.grpc.connection.Parsed;
import dev.nereid.grpc.connection.SentBytes;
import dev.nereid.grpc.wire.AssembledRequest;
import dev.nereid.grpc.wire.CallContext;
import dev.nereid.grpc.wire.GrpcErrors;
import dev.nereid.grpc.wire.InferMessage;
import dev.nereid.grpc.wire.InferResponseMessage;
import dev.nereid.grpc.wire.RequestFailures;
import dev.nereid.grpc.wire.RequestNames;
import dev.nereid.grpc.wire.ResponseArrays;
import dev.nereid.grpc.wire.SharedTensors;
import dev.nereid.spi.ErrorCode;
import io.grpc.Metadata;
import io.grpc.ServerCall;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Handles one {@code ModelInfer} call from its request to its response. The client is heard on the event loop of its
 * connection; the answer may come on any thread, which writes the message and hands its bytes to the transport.
 *
 * <p>The request is read while its bytes are there, in {@link #onMessage}, and asked, or refused, when the client has said
 * that nothing follows. From then on its memory is the server's. The call ends once: with the first answer, the first error,
 * or the client's cancellation, whichever comes first; an answer that comes later is closed unread. An answer stays
 * open until the client has it, so that those who do not read are counted like everybody else who has memory.
 */
public final class ModelInferCall extends ServerCall.Listener<Parsed<InferMessage>>
        implements ResponseObserver, LargeMessageReader.Callback<InferMessage, AssembledRequest> {
    private static final Logger LOG = LoggerFactory.getLogger(ModelInferCall.class);
    private static final String OUT_OF_MEMORY =
            "response: no memory to send it (expected: room on the heap); try again later";
    private static final String DECOUPLED = "ModelInfer RPC doesn't support models with decoupled transaction policy";

    private final ServerCall<Parsed<InferMessage>, InferResponseMessage> call;
    private final InferenceServer server;
    private final InferCallDependencies dependencies;
    private final ResponseArrays arrays;
    private final CallContext context;
    private final AtomicBoolean ended = new AtomicBoolean();
    private @Nullable InferRequest request; // event loop only, and null once the server has it
    private SharedTensors shared = SharedTensors.NONE; // written before the request is asked
    private @Nullable InferenceException refusal; // event loop only
    private String model = ""; // written before the request is asked, as the id is
    private String id = "";
    private boolean isReading; // event loop only: a worker reads the message
    private boolean isHalfClosed; // event loop only: meanwhile
    private volatile @Nullable Cancellation cancellation;
    private volatile boolean cancelled;
    private final UnsentResponse unsent = new UnsentResponse();
    private boolean isSending; // of the thread that sends the response
    private @Nullable SentBytes sentBytes; // of a large response; of the thread that sends it

    public ModelInferCall(
            ServerCall<Parsed<InferMessage>, InferResponseMessage> call,
            InferenceServer server,
            InferCallDependencies calls,
            ResponseArrays arrays,
            CallContext origin) {
        this.call = call;
        this.server = server;
        this.dependencies = calls;
        this.arrays = arrays;
        this.context = origin;
    }

    @Override
    public void onMessage(Parsed<InferMessage> parsed) {
        switch (parsed) {
            case Parsed.Failed<InferMessage>(InferenceException failure) -> refusal = failure;
            case Parsed.Ok<InferMessage>(InferMessage message) -> {
                try (message) {
                    if (expectsMessage()) {
                        keep(assemble(message));
                    }
                } catch (InferenceException failure) {
                    refusal = failure;
                } catch (OutOfMemoryError failure) {
                    refusal = GrpcErrors.outOfMemory(failure);
                }
            }
            case Parsed.Deferred<InferMessage> later -> {
                if (expectsMessage()) {
                    isReading = true;
                    LargeMessageReader.read(later, call.getAttributes(), this);
                } else {
                    later.bytes().close();
                }
            }
        }
    }

    /** Says whether a message is wanted; gRPC cancels a call with a second one. */
    private boolean expectsMessage() {
        return !ended.get() && request == null && refusal == null && !isReading;
    }

    @Override
    public AssembledRequest convert(InferMessage message) {
        return assemble(message);
    }

    @Override
    public void discard(AssembledRequest assembled) {
        assembled.request().release().run();
    }

    @Override
    public void onResult(LargeMessageReader.Result<AssembledRequest> result) {
        isReading = false;
        switch (result) {
            case LargeMessageReader.Failed<AssembledRequest>(InferenceException failure) -> refusal = failure;
            case LargeMessageReader.Done<AssembledRequest>(AssembledRequest assembled) -> {
                if (ended.get()) {
                    assembled.request().release().run();
                    return;
                }
                keep(assembled);
            }
        }
        if (isHalfClosed) {
            onHalfClose();
        }
    }

    private void keep(AssembledRequest assembled) {
        shared = assembled.shared();
        request = assembled.request();
    }

    private AssembledRequest assemble(InferMessage message) {
        RequestNames names = message.names();
        model = names.model();
        id = names.id();
        ModelRef asked = ModelRef.parse(names.model(), names.version());
        if (server.models().metadata(asked).decoupled()) {
            throw new InferenceException(ErrorCode.UNSUPPORTED, DECOUPLED);
        }
        return dependencies.assembler().assemble(message, asked, context);
    }

    @Override
    public void onHalfClose() {
        if (ended.get()) {
            return;
        }
        if (isReading) {
            isHalfClosed = true;
            return;
        }
        InferRequest asked = request;
        if (refusal != null) {
            refuse(refusal);
        } else if (asked == null) {
            refuse(InferenceException.clientError("Half-closed without a request"));
        } else {
            request = null;
            Cancellation handle = server.infer(asked, this);
            cancellation = handle;
            if (cancelled) { // by an answer that came before the handle
                handle.cancel();
            }
        }
    }

    @Override
    public void onCancel() {
        unsent.callEnded();
        if (end()) {
            cancelRequest();
        }
    }

    @Override
    public void onComplete() {
        unsent.callEnded();
    }

    private void cancelRequest() {
        cancelled = true;
        Cancellation handle = cancellation;
        if (handle != null) {
            handle.cancel();
        }
    }

    @Override
    public void onResponse(InferResponse response) {
        GuardedConnection connection =
                GuardedConnection.isOnEventLoop() && dependencies.compression().isSlow(response, shared)
                        ? call.getAttributes().get(GuardedConnection.KEY)
                        : null;
        if (connection == null) {
            respond(response);
        } else {
            connection.executeOnWorker(() -> respond(response));
        }
    }

    @Override
    public void onFailedResponse(InferenceException error) { // the model has been replaced since it was looked up
        fail(new InferenceException(ErrorCode.UNSUPPORTED, DECOUPLED));
        cancelRequest();
    }

    private void respond(InferResponse response) {
        boolean sent = false;
        try {
            if (ended.get()) {
                return;
            }
            if (!response.isFinal()) { // the model has been replaced since it was looked up
                fail(new InferenceException(ErrorCode.UNSUPPORTED, DECOUPLED));
                cancelRequest();
                return;
            }
            sent = send(response);
        } catch (InferenceException error) {
            failSending(error);
        } catch (OutOfMemoryError error) {
            failSending(new InferenceException(ErrorCode.UNAVAILABLE, OUT_OF_MEMORY));
            LOG.atWarn() // without the cause, which would be fatal
                    .addKeyValue("model", response.model())
                    .addKeyValue("error", error.getMessage())
                    .log("no memory to send a response");
        } catch (RuntimeException | Error error) {
            failSending(new InferenceException(ErrorCode.INTERNAL, "internal error"));
            LOG.atError().addKeyValue("model", response.model()).setCause(error).log("response not written");
        } finally {
            if (sent) {
                unsent.hold(response, sentBytes);
            } else {
                if (sentBytes != null) {
                    sentBytes.clear();
                }
                response.close();
            }
        }
    }

    private boolean send(InferResponse response) {
        byte[] array = arrays.take();
        try (InferResponseMessage message = InferResponseMessage.of(response, shared, server.memory(), array)) {
            if (message.available() > SentBytes.SMALL_BYTES) {
                sentBytes = SentBytes.of(message.available(), dependencies.transportMemory(), call.getAttributes());
            }
            if (!end()) {
                return false;
            }
            isSending = true;
            shared.answered();
            context.encoding().ifPresent(call::setCompression);
            call.sendHeaders(new Metadata());
            call.sendMessage(message);
            GrpcErrors.succeed(call);
            return true;
        } finally {
            arrays.giveBack(array);
        }
    }

    /** Fails the call, also if its response was about to be sent. */
    private void failSending(InferenceException error) {
        if (!isSending) {
            fail(error);
            return;
        }
        try {
            GrpcErrors.fail(call, error);
        } catch (IllegalStateException _) {
            LOG.debug("call was ended by the transport");
        }
    }

    @Override
    public void onCompleted() {
        onError(new InferenceException(ErrorCode.INTERNAL, "expected a single response, got 0"));
    }

    @Override
    public void onError(InferenceException error) {
        fail(error);
    }

    @Override
    public RequestProtocol protocol() {
        return RequestProtocol.GRPC;
    }

    /** Fails a call that the server was not asked. */
    private void refuse(InferenceException error) {
        fail(server.refusals().refuse(RequestProtocol.GRPC, error));
    }

    @Override
    public void fail(InferenceException error) {
        if (end()) {
            RequestFailures.log(id, model, error);
            shared.answered();
            GrpcErrors.fail(call, error);
        }
    }

    /** Ends the call, and gives back the memory of a request that was never asked. Returns false if it has ended. */
    private boolean end() {
        if (!ended.compareAndSet(false, true)) {
            return false;
        }
        if (request != null) {
            request.release().run();
            request = null;
        }
        return true;
    }
}
