package dev.nereid.grpc;

import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelRef;
import dev.nereid.api.RequestProtocol;
import dev.nereid.spi.ErrorCode;
import io.grpc.Metadata;
import io.grpc.ServerCall;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One call of {@code ModelStreamInfer}. The client is heard on the event loop of its connection; answers come on any
 * thread.
 *
 * <p>Only one thread at a time writes, whichever has something to say first: the others leave their word in
 * {@link #drains}, and the one that writes looks again before it leaves. It writes as long as the transport takes
 * messages without piling them up; what is left waits in the outbox, and {@link #onReady} goes on. A thread that has
 * written a few messages leaves the rest to an event loop: it may be that of a model, which others wait for, and those
 * that leave their word may never cease to. The call ends once, by the thread that writes, unless the client has gone:
 * then nothing is written, what waits is closed, and requests are withdrawn.
 *
 * <p>Nobody waits for the client. If models are too far ahead of it the call ends, and with it all that waits.
 */
final class ModelStreamInferCall extends ServerCall.Listener<Parsed<InferMessage>>
        implements InferMessages.Reading<InferMessage, ModelStreamInferCall.Prepared> {
    private static final Logger LOG = LoggerFactory.getLogger(ModelStreamInferCall.class);
    private static final RequestNames NAMELESS = new RequestNames("", "", "");

    /** How many messages a thread writes at a time. */
    private static final int TURN = 16;

    private final ServerCall<Parsed<InferMessage>, InferResponseMessage> call;
    private final ModelStreamInferMethod method;
    private final CallOrigin origin;

    /** Whether the first error ends the call. */
    private final boolean isStrict;

    private final StreamOutbox outbox;

    /** How often threads wanted to write since nobody does; 0 while nobody does. */
    private final AtomicInteger drains = new AtomicInteger();

    private final AtomicReference<@Nullable InferenceException> fatal = new AtomicReference<>();
    private volatile boolean isOver;

    // Of the event loop: whether a worker reads a message, and whether the client has half-closed meanwhile.
    private boolean isReading;
    private boolean isHalfClosed;

    private final @Nullable GuardedConnection connection;
    private final SentBytes sentBytes;

    // Of the thread that writes.
    private StreamOutbox.@Nullable Taken postponed; // left to a worker
    private boolean headersSent;
    private boolean ended;

    ModelStreamInferCall(
            ServerCall<Parsed<InferMessage>, InferResponseMessage> call,
            ModelStreamInferMethod method,
            CallOrigin origin,
            boolean isStrict) {
        this.call = call;
        this.method = method;
        this.origin = origin;
        this.isStrict = isStrict;
        this.outbox = new StreamOutbox(method.limits());
        this.connection = call.getAttributes().get(GuardedConnection.KEY);
        this.sentBytes = new SentBytes(method.transport(), call.getAttributes());
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
        drain();
    }

    /**
     * A message that was read: a call, or why there is none.
     *
     * @param names the names of the request
     * @param isDecoupled whether its model is decoupled
     * @param bytes the length of the message
     * @param assembled the call
     * @param error why there is none
     */
    record Prepared(
            RequestNames names,
            boolean isDecoupled,
            int bytes,
            @Nullable AssembledCall assembled,
            @Nullable InferenceException error) {}

    @Override
    public Prepared make(InferMessage message) {
        RequestNames names = message.names();
        int bytes = message.bytes().length();
        boolean isDecoupled = false;
        try {
            method.checkRuns();
            ModelRef model = ModelRef.parse(names.model(), names.version());
            isDecoupled = method.server().models().describe(model).decoupled();
            AssembledCall assembled = method.assembler().assemble(message, model, origin);
            return new Prepared(names, isDecoupled, bytes, assembled, null);
        } catch (InferenceException error) {
            return new Prepared(names, isDecoupled, bytes, null, error);
        }
    }

    @Override
    public void discard(Prepared prepared) {
        AssembledCall assembled = prepared.assembled();
        if (assembled != null) {
            assembled.call().release().run();
        }
    }

    @Override
    public void fail(InferenceException error) {
        fatal.compareAndSet(null, error);
        drain();
    }

    @Override
    public void take(InferMessages.Result<Prepared> result) {
        isReading = false;
        outbox.hasRead();
        switch (result) {
            case InferMessages.Failed<Prepared>(InferenceException failure) -> refuse(NAMELESS, false, failure);
            case InferMessages.Done<Prepared>(Prepared prepared) -> take(prepared);
        }
        if (isHalfClosed) {
            outbox.halfClose();
        }
        drain();
    }

    private void take(Prepared prepared) {
        AssembledCall assembled = prepared.assembled();
        if (prepared.error() != null) {
            refuse(prepared.names(), prepared.isDecoupled(), prepared.error());
        } else if (assembled != null) {
            Optional<StreamedRequest> request =
                    enter(prepared.names(), prepared.isDecoupled(), prepared.bytes(), assembled.shared());
            if (request.isPresent()) {
                request.get().ask(method.server(), assembled);
            } else {
                assembled.call().release().run();
            }
        }
    }

    private void refuse(RequestNames names, boolean isDecoupled, InferenceException error) {
        InferenceException told = method.server().refusals().refuse(RequestProtocol.GRPC, error);
        enter(names, isDecoupled, 0, SharedTensors.NONE).ifPresent(request -> request.refuse(told));
    }

    private Optional<StreamedRequest> enter(RequestNames names, boolean isDecoupled, long bytes, SharedTensors shared) {
        StreamedRequest request = new StreamedRequest(this, names, isDecoupled, shared);
        Optional<StreamOutbox.Lane> lane = outbox.open(request, isDecoupled, bytes);
        lane.ifPresent(request::enter);
        return lane.map(_ -> request);
    }

    @Override
    public void onReady() {
        drain();
    }

    @Override
    public void onHalfClose() {
        if (isReading) {
            isHalfClosed = true;
            return;
        }
        outbox.halfClose();
        drain();
    }

    @Override
    public void onCancel() {
        isOver = true;
        sentBytes.clear();
        abandon(outbox.close());
    }

    @Override
    public void onComplete() {
        isOver = true;
        sentBytes.clear();
    }

    /** Reads the first message. */
    void begin() {
        drain();
    }

    /**
     * Writes something, now or when its turn comes.
     *
     * @return false if nobody wants it any more; it then stays the caller's
     */
    boolean offer(StreamOutbox.Lane lane, Outgoing outgoing) {
        if (outgoing instanceof Outgoing.Failure failure
                && origin.isExpired(failure.error(), method.nanoTime().getAsLong())) {
            return false;
        }
        if (isStrict && outgoing instanceof Outgoing.Failure failure) {
            fatal.compareAndSet(null, failure.error());
            drain();
            return true;
        }
        StreamOutbox.Admission admission = outbox.offer(lane, outgoing);
        if (admission == StreamOutbox.Admission.TOO_FAR_AHEAD) {
            LOG.debug("client does not read");
            fatal.compareAndSet(null, tooSlow());
        }
        drain();
        return admission == StreamOutbox.Admission.TAKEN;
    }

    private InferenceException tooSlow() {
        return new InferenceException(
                ErrorCode.UNAVAILABLE,
                "the client reads the stream too slowly: " + method.limits().bytesAhead()
                        + " bytes or more of responses wait (expected: less; read responses as they come, or ask for"
                        + " fewer at a time)");
    }

    private void drain() {
        if (drains.getAndIncrement() == 0) {
            takeTurn();
        }
    }

    private void takeTurn() {
        for (int i = 0; i < TURN; i++) {
            int seen = drains.get();
            if (postponed != null && connection != null && GuardedConnection.isOnEventLoop()) {
                connection.elsewhere(this::writePostponed);
                return;
            }
            if (!advances() && drains.addAndGet(-seen) == 0) {
                return;
            }
        }
        method.eventLoops().execute(this::takeTurn);
    }

    /** Writes what was left to a worker, and goes on. */
    private void writePostponed() {
        int seen = drains.get();
        if (advances() || drains.addAndGet(-seen) != 0) {
            takeTurn();
        }
    }

    private boolean advances() {
        try {
            return advance();
        } catch (OutOfMemoryError error) { // as a cause, it would be fatal
            breakOff();
            LOG.atWarn().addKeyValue("error", error.getMessage()).log("no memory to send a response");
            return false;
        } catch (RuntimeException | Error error) {
            breakOff();
            LOG.atError().setCause(error).log("stream broken");
            return false;
        }
    }

    /** Takes one step. Returns whether there may be another one to take. */
    private boolean advance() {
        StreamOutbox.Taken before = postponed;
        postponed = null;
        if (ended) {
            close(before);
            return false;
        }
        if (before != null) {
            write(before);
            return true;
        }
        if (fatal.get() == null && call.isReady()) {
            sentBytes.clear(); // next to nothing of the messages before waits
            Optional<StreamOutbox.Taken> next = outbox.poll();
            if (next.isPresent()) {
                if (isForWorker(next.get())) {
                    postponed = next.get();
                } else {
                    write(next.get());
                }
                return true;
            }
        }
        InferenceException error = fatal.get();
        if (error != null) {
            endWith(error);
        } else if (outbox.isDone()) {
            ended = true;
            GrpcErrors.succeed(call);
        } else if (outbox.takePermitToRead(call.isReady())) {
            call.request(1);
        }
        return false;
    }

    /** Says whether something takes this thread, an event loop, too long to write. */
    private boolean isForWorker(StreamOutbox.Taken taken) {
        return connection != null
                && GuardedConnection.isOnEventLoop()
                && taken.outgoing().byteSize()
                        > method.compression().maxOnEventLoop(taken.request().shared());
    }

    private static void close(StreamOutbox.@Nullable Taken taken) {
        if (taken != null && taken.outgoing() instanceof Outgoing.Response response) {
            response.response().close();
        }
    }

    private void write(StreamOutbox.Taken taken) {
        StreamedRequest request = taken.request();
        if (taken.outgoing().isLast()) {
            request.shared().answered();
        }
        switch (taken.outgoing()) {
            case Outgoing.Response response -> write(request, response);
            case Outgoing.Failure(InferenceException error, boolean isRefusal, boolean isLast) ->
                send(
                        isRefusal
                                ? InferResponseMessage.streamedRefusal(
                                        error.publicMessage(), request.names().id())
                                : InferResponseMessage.streamedEnd(error.publicMessage(), request.names(), isLast));
            case Outgoing.End(boolean isTold) -> {
                if (isTold) {
                    send(InferResponseMessage.streamedEnd("", request.names(), true));
                }
            }
        }
    }

    private void write(StreamedRequest request, Outgoing.Response outgoing) {
        try (InferResponse response = outgoing.response()) {
            send(InferResponseMessage.streamed(
                    response,
                    outgoing.isLast(),
                    request.shared(),
                    method.server().memory()));
        } catch (InferenceException error) {
            if (isStrict) {
                fatal.compareAndSet(null, error);
            } else {
                send(InferResponseMessage.streamedEnd(error.publicMessage(), request.names(), outgoing.isLast()));
            }
        }
    }

    private void send(InferResponseMessage message) {
        try (message) {
            if (!headersSent) {
                headersSent = true;
                origin.encoding().ifPresent(call::setCompression);
                call.sendHeaders(new Metadata());
            }
            sentBytes.add(message.available());
            call.sendMessage(message);
            if (isOver) {
                sentBytes.clear();
            }
        }
    }

    /** Ends a call that cannot be written to. */
    private void breakOff() {
        if (!ended) {
            try {
                endWith(new InferenceException(ErrorCode.INTERNAL, "internal error"));
            } catch (IllegalStateException _) {
                LOG.debug("call was ended by the transport");
            }
        }
    }

    /** Ends the call with an error, which is the last response to all requests that were not answered. */
    private void endWith(InferenceException error) {
        StreamOutbox.Remains remains = outbox.close();
        ended = true;
        try {
            for (StreamedRequest request : remains.requests()) {
                request.shared().answered();
            }
            GrpcErrors.fail(call, error);
        } finally {
            abandon(remains);
        }
    }

    /** Lets go of all that was not written, and of all that was not answered. */
    private static void abandon(StreamOutbox.Remains remains) {
        for (Outgoing outgoing : remains.waiting()) {
            if (outgoing instanceof Outgoing.Response response) {
                response.response().close();
            }
        }
        remains.requests().forEach(StreamedRequest::withdraw);
    }
}
