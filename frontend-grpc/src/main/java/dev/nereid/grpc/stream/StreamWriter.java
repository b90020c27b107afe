package dev.nereid.grpc.stream;

import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.grpc.connection.ConnectionLimits;
import dev.nereid.grpc.connection.Parsed;
import dev.nereid.grpc.connection.UnsentBytes;
import dev.nereid.grpc.wire.CallContext;
import dev.nereid.grpc.wire.GrpcErrors;
import dev.nereid.grpc.wire.InferMessage;
import dev.nereid.grpc.wire.InferResponseMessage;
import dev.nereid.spi.ErrorCode;
import io.grpc.Metadata;
import io.grpc.ServerCall;
import java.util.Optional;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Writes the responses of one ModelStreamInfer call and ends it. Safe for use by any thread.
 *
 * <p>Only one thread at a time writes, the first that calls {@link #drain}: the others increment {@link #drains}, and
 * the writing thread checks it before it leaves. It writes as long as the transport takes messages without queueing
 * them; the rest waits in the outbox until the transport is ready. A thread that has written a few messages leaves the
 * rest to an event loop: it may be an instance thread, which other requests wait for, and the drain requests of other
 * threads may never cease. The call ends once, by the writing thread, unless the client has cancelled it: then nothing
 * is written, waiting responses are closed, and requests are cancelled.
 *
 * <p>No thread waits for the client. The flows of requests tell models whether it reads; if they are too far ahead of it
 * all the same, the call ends and waiting responses are dropped.
 */
final class StreamWriter {
    private static final Logger LOG = LoggerFactory.getLogger(StreamWriter.class);

    /** The maximum number of messages that a thread writes at a time. */
    private static final int MAX_MESSAGES_PER_RUN = 16;

    private final ServerCall<Parsed<InferMessage>, InferResponseMessage> call;
    private final StreamOutbox outbox;
    private final StreamContext stream;
    private final CallContext context;

    /** {@code true} if the first error response of a model ends the call. A refusal never does. */
    private final boolean isStrict;

    /** Drain requests since the last one was served; 0 while no thread writes. */
    private final AtomicInteger drains = new AtomicInteger();

    /** The flows that wait for the transport alone, each once. */
    private final Queue<StreamFlow> paused = new ConcurrentLinkedQueue<>();

    private final AtomicReference<@Nullable InferenceException> fatal = new AtomicReference<>();
    private volatile boolean closed;

    private final @Nullable ConnectionLimits connection;
    private final UnsentBytes sentBytes;

    // Confined to the thread that writes.
    private StreamOutbox.@Nullable Entry postponed; // left to a worker
    private boolean headersSent;
    private boolean ended;

    /** Creates a writer. The first error response of a model ends the call if {@code isStrict}. */
    StreamWriter(
            ServerCall<Parsed<InferMessage>, InferResponseMessage> call,
            StreamOutbox outbox,
            StreamContext stream,
            CallContext context,
            boolean isStrict) {
        this.call = call;
        this.outbox = outbox;
        this.stream = stream;
        this.context = context;
        this.isStrict = isStrict;
        this.connection = call.getAttributes().get(ConnectionLimits.KEY);
        this.sentBytes = new UnsentBytes(stream.dependencies().transportMemory(), call.getAttributes());
    }

    /** Ends the call with an error, unless it has ended. */
    void fail(InferenceException error) {
        fatal.compareAndSet(null, error);
        drain();
    }

    /** Drops all waiting responses, since the client has cancelled the call. */
    void cancel() {
        closed = true;
        sentBytes.clear();
        discard(outbox.close());
    }

    /** Ends the count of sent messages, since the call is complete. */
    void complete() {
        closed = true;
        sentBytes.clear();
    }

    /** Writes a message, now or later; returns {@code false} if request or stream has ended: the caller keeps it. */
    boolean offer(StreamOutbox.Lane lane, OutgoingMessage outgoing) {
        if (outgoing instanceof OutgoingMessage.Failure failure
                && context.isExpired(
                        failure.error(), stream.dependencies().nanoTime().getAsLong())) {
            return false;
        }
        if (isStrict && outgoing instanceof OutgoingMessage.Failure failure && !failure.isRefusal()) {
            fatal.compareAndSet(null, failure.error());
            drain();
            return true;
        }
        StreamOutbox.OfferResult result = outbox.offer(lane, outgoing);
        if (result == StreamOutbox.OfferResult.OVERFLOW) {
            LOG.debug("client reads too slowly");
            fatal.compareAndSet(null, tooSlow());
        }
        drain();
        return result == StreamOutbox.OfferResult.ACCEPTED;
    }

    /** Returns whether the transport accepts messages. */
    boolean isReady() {
        return call.isReady();
    }

    /** Says how far the messages of a request are written. */
    StreamOutbox.Progress progress(StreamOutbox.Lane lane) {
        return outbox.progress(lane);
    }

    /** Resumes a flow when the transport accepts messages. */
    void resumeLater(StreamFlow flow) {
        paused.add(flow);
        drain();
    }

    private InferenceException tooSlow() {
        return new InferenceException(
                ErrorCode.UNAVAILABLE,
                "the client reads the stream too slowly: " + stream.limits().bytesAhead()
                        + " bytes or more of responses wait (expected: less; read responses as they arrive, or send"
                        + " fewer requests at a time)");
    }

    /** Writes messages that may be written; then ends the call if done, or requests the next message within limits. */
    void drain() {
        if (drains.getAndIncrement() == 0) {
            runDrain();
        }
    }

    private void runDrain() {
        for (int i = 0; i < MAX_MESSAGES_PER_RUN; i++) {
            int seen = drains.get();
            if (postponed != null && connection != null && ConnectionLimits.isOnEventLoop()) {
                connection.executeOnWorker(this::writePostponed);
                return;
            }
            if (!tryAdvance() && drains.addAndGet(-seen) == 0) {
                return;
            }
        }
        stream.eventLoops().execute(this::runDrain);
    }

    /** Writes the postponed message on a worker, and continues. */
    private void writePostponed() {
        int seen = drains.get();
        if (tryAdvance() || drains.addAndGet(-seen) != 0) {
            runDrain();
        }
    }

    private boolean tryAdvance() {
        try {
            return advance();
        } catch (OutOfMemoryError error) { // not logged as a cause, which the log treats as fatal
            abort();
            LOG.atWarn().addKeyValue("error", error.getMessage()).log("no memory to send a response");
            return false;
        } catch (RuntimeException | Error error) {
            abort();
            LOG.atError().setCause(error).log("stream broken");
            return false;
        }
    }

    /** Performs one step. Returns whether another may follow. */
    private boolean advance() {
        StreamOutbox.Entry before = postponed;
        postponed = null;
        if (ended) {
            close(before);
            return false;
        }
        if (before != null) {
            write(before);
            before.request().checkFlow();
            return true;
        }
        if (fatal.get() == null && call.isReady()) {
            sentBytes.clear(); // almost nothing of earlier messages waits
            Optional<StreamOutbox.Entry> next = outbox.poll();
            if (next.isPresent()) {
                if (needsWorker(next.get())) {
                    postponed = next.get();
                } else {
                    write(next.get());
                    next.get().request().checkFlow();
                }
                return true;
            }
            resumePaused();
        }
        InferenceException error = fatal.get();
        if (error != null) {
            endWith(error);
        } else if (outbox.isDone()) {
            ended = true;
            GrpcErrors.succeed(call);
        } else if (outbox.tryStartRead(call.isReady())) {
            call.request(1);
        }
        return false;
    }

    /** Resumes flows while the transport accepts messages. A flow that cannot go on yet is added again. */
    private void resumePaused() {
        StreamFlow flow = paused.poll();
        while (flow != null) {
            flow.resume();
            flow = call.isReady() ? paused.poll() : null;
        }
    }

    /**
     * Says whether a worker has to write the message. That is so if this thread is an event loop and the message takes
     * too long to write on it.
     */
    private boolean needsWorker(StreamOutbox.Entry taken) {
        return connection != null
                && ConnectionLimits.isOnEventLoop()
                && taken.outgoing().byteSize()
                        > stream.dependencies().compression().maxOnEventLoop();
    }

    private static void close(StreamOutbox.@Nullable Entry taken) {
        if (taken != null && taken.outgoing() instanceof OutgoingMessage.Response response) {
            response.response().close();
        }
    }

    private void write(StreamOutbox.Entry taken) {
        StreamedRequest request = taken.request();
        if (taken.outgoing().isFinal()) {
            request.shared().releaseRegistrations();
        }
        switch (taken.outgoing()) {
            case OutgoingMessage.Response response -> write(request, response);
            case OutgoingMessage.Failure(InferenceException error, boolean isRefusal, boolean isLast) ->
                send(
                        isRefusal
                                ? InferResponseMessage.streamedRefusal(
                                        error.publicMessage(), request.names().id())
                                : InferResponseMessage.streamedEnd(error.publicMessage(), request.names(), isLast));
            case OutgoingMessage.End(boolean isSent) -> {
                if (isSent) {
                    send(InferResponseMessage.streamedEnd("", request.names(), true));
                }
            }
        }
    }

    private void write(StreamedRequest request, OutgoingMessage.Response outgoing) {
        try (InferResponse response = outgoing.response()) {
            send(InferResponseMessage.streamed(response, outgoing.isFinal(), request.shared()));
        } catch (InferenceException error) {
            if (isStrict) {
                fatal.compareAndSet(null, error);
            } else {
                send(InferResponseMessage.streamedEnd(error.publicMessage(), request.names(), outgoing.isFinal()));
            }
        }
    }

    private void send(InferResponseMessage message) {
        if (!headersSent) {
            headersSent = true;
            context.encoding().ifPresent(call::setCompression);
            call.sendHeaders(new Metadata());
        }
        sentBytes.add(message.available());
        call.sendMessage(message);
        if (closed) {
            sentBytes.clear();
        }
    }

    /** Ends a call that cannot be written to. */
    private void abort() {
        if (!ended) {
            try {
                endWith(new InferenceException(ErrorCode.INTERNAL, "internal error"));
            } catch (IllegalStateException _) {
                LOG.debug("call was ended by the transport");
            }
        }
    }

    /** Ends the call with an error, which is the terminal response to all unfinished requests. */
    private void endWith(InferenceException error) {
        StreamOutbox.Remainder remains = outbox.close();
        ended = true;
        try {
            for (StreamedRequest request : remains.requests()) {
                request.shared().releaseRegistrations();
            }
            GrpcErrors.fail(call, error);
        } finally {
            discard(remains);
        }
    }

    /** Closes the responses that were not written, and cancels unfinished requests. */
    private static void discard(StreamOutbox.Remainder remains) {
        for (OutgoingMessage outgoing : remains.waiting()) {
            if (outgoing instanceof OutgoingMessage.Response response) {
                response.response().close();
            }
        }
        for (StreamedRequest request : remains.requests()) {
            request.cancel();
            request.checkFlow();
        }
    }
}
