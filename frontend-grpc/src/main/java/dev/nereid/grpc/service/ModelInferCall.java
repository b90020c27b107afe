package dev.nereid.grpc.service;

import dev.nereid.api.Cancellation;
import dev.nereid.api.InferRequest;
import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InferenceServer;
import dev.nereid.api.ModelRef;
import dev.nereid.api.RequestProtocol;
import dev.nereid.api.ResponseObserver;
import dev.nereid.grpc.connection.ConnectionLimits;
import dev.nereid.grpc.connection.LargeMessageReader;
import dev.nereid.grpc.connection.Parsed;
import dev.nereid.grpc.connection.UnsentBytes;
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
 * Handles one {@code ModelInfer} call from its request to its response. The client's events arrive on the event loop of
 * its connection; the response may arrive on any thread, which writes the message and passes its bytes to the
 * transport.
 *
 * <p>The request is read while its bytes are available, in {@link #onMessage}, and submitted or refused when the client
 * half-closes. From then on the server owns its memory. The call ends once: with the first response, the first error or
 * the client's cancellation; a later response is closed unread. A response stays open until the client has received it,
 * so that the memory of clients that do not read is counted, too.
 */
public final class ModelInferCall extends ServerCall.Listener<Parsed<InferMessage>>
        implements ResponseObserver, LargeMessageReader.Callback<InferMessage, AssembledRequest> {
    private static final Logger LOG = LoggerFactory.getLogger(ModelInferCall.class);
    private static final String OUT_OF_MEMORY =
            "response: no memory to send it (expected: free heap memory); try again later";
    private static final String DECOUPLED = "ModelInfer RPC doesn't support models with decoupled transaction policy";

    private final ServerCall<Parsed<InferMessage>, InferResponseMessage> call;
    private final InferenceServer server;
    private final InferCallDependencies dependencies;
    private final ResponseArrays arrays;
    private final CallContext context;
    private final AtomicBoolean ended = new AtomicBoolean();
    private @Nullable InferRequest request; // event loop only; null once submitted
    private SharedTensors shared = SharedTensors.NONE; // written before the request is submitted
    private @Nullable InferenceException refusal; // event loop only
    private String model = ""; // written before the request is submitted, as is the id
    private String id = "";
    private boolean isReading; // event loop only: whether a worker reads the message
    private boolean isHalfClosed; // event loop only: whether the client half-closed meanwhile
    private volatile @Nullable Cancellation cancellation;
    private volatile boolean cancelled;
    private final UnsentResponse unsent = new UnsentResponse();
    private boolean isSending; // confined to the thread that sends the response
    private @Nullable UnsentBytes sentBytes; // of a large response; confined to the thread that sends it

    public ModelInferCall(
            ServerCall<Parsed<InferMessage>, InferResponseMessage> call,
            InferenceServer server,
            InferCallDependencies dependencies,
            ResponseArrays arrays,
            CallContext context) {
        this.call = call;
        this.server = server;
        this.dependencies = dependencies;
        this.arrays = arrays;
        this.context = context;
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
            case Parsed.Deferred<InferMessage> deferred -> {
                if (expectsMessage()) {
                    isReading = true;
                    LargeMessageReader.read(deferred, call.getAttributes(), this);
                } else {
                    deferred.bytes().close();
                }
            }
        }
    }

    /** Says whether a message is expected; gRPC cancels a call with a second one. */
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
        ModelRef modelRef = ModelRef.parse(names.model(), names.version());
        if (server.models().metadata(modelRef).decoupled()) {
            throw new InferenceException(ErrorCode.UNSUPPORTED, DECOUPLED);
        }
        return dependencies.assembler().assemble(message, modelRef, context);
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
        InferRequest submitted = request;
        if (refusal != null) {
            refuse(refusal);
        } else if (submitted == null) {
            refuse(InferenceException.clientError("Half-closed without a request"));
        } else {
            request = null;
            Cancellation handle = server.infer(submitted, this);
            cancellation = handle;
            if (cancelled) { // by a response that arrived before the handle
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
        ConnectionLimits connection =
                ConnectionLimits.isOnEventLoop() && dependencies.compression().isSlow(response)
                        ? call.getAttributes().get(ConnectionLimits.KEY)
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
            LOG.atWarn() // without the cause, which the log treats as fatal
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
        try {
            InferResponseMessage message = InferResponseMessage.of(response, shared, array);
            if (message.available() > UnsentBytes.SMALL_BYTES) {
                sentBytes = UnsentBytes.of(message.available(), dependencies.transportMemory(), call.getAttributes());
            }
            if (!end()) {
                return false;
            }
            isSending = true;
            shared.releaseRegistrations();
            context.encoding().ifPresent(call::setCompression);
            call.sendHeaders(new Metadata());
            call.sendMessage(message);
            GrpcErrors.succeed(call);
            return true;
        } finally {
            arrays.release(array);
        }
    }

    /** Fails the call, also if sending of its response had begun. */
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

    /** Fails a call without a submitted request. */
    private void refuse(InferenceException error) {
        fail(server.refusals().refuse(RequestProtocol.GRPC, error));
    }

    @Override
    public void fail(InferenceException error) {
        if (end()) {
            RequestFailures.log(id, model, error);
            shared.releaseRegistrations();
            if (context.isExpired(error, dependencies.nanoTime().getAsLong())) {
                GrpcErrors.expire(call); // the clock of the client may be late
            } else {
                GrpcErrors.fail(call, error);
            }
        }
    }

    /** Ends the call, and frees a request that was not submitted. Returns {@code false} if the call has ended. */
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
