package dev.nereid.http.generate;

import dev.nereid.api.Cancellation;
import dev.nereid.api.InferRequest;
import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InferenceServer;
import dev.nereid.api.RequestProtocol;
import dev.nereid.api.ResponseFlow;
import dev.nereid.api.ResponseObserver;
import dev.nereid.api.frontend.FlowSignal;
import dev.nereid.http.body.ContentTypes;
import dev.nereid.http.body.EventLoopExecutor;
import dev.nereid.http.body.HttpErrors;
import dev.nereid.http.body.QueuedBytes;
import dev.nereid.http.body.RequestFailures;
import dev.nereid.http.json.JsonChunks;
import dev.nereid.http.json.JsonFields;
import dev.nereid.http.json.JsonMemoryLimiter;
import io.netty.buffer.ByteBuf;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.http.HttpHeaders;
import io.vertx.core.http.HttpServerRequest;
import io.vertx.core.http.HttpServerResponse;
import io.vertx.core.internal.buffer.BufferInternal;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Sends the responses of one {@code generate_stream} request as server-sent events. Confined to its event loop, but for
 * the observer's methods, which submit tasks to it.
 *
 * <p>Models produce responses as fast as they can, and a model or an event loop may not wait for a client. So unsent
 * bytes are counted, from the arrival of a response until the transport has its last byte; beyond
 * {@link #MAX_UNSENT_BYTES} the request is cancelled and the connection closed, which frees all of them. The thread
 * that delivers responses increases the count, the event loop decreases it.
 */
final class GenerateStreamExchange implements ResponseObserver {
    private static final Logger LOG = LoggerFactory.getLogger(GenerateStreamExchange.class);
    /** The number of unsent bytes from which the flow is closed. */
    private static final long OPEN_BYTES = 256 << 10;

    /** The maximum number of bytes that wait for a client. A single response may be larger. */
    private static final long MAX_UNSENT_BYTES = 16 << 20;

    /** The cost of a response besides its outputs. */
    private static final long OVERHEAD = 512;

    /** The cost of a part of an event besides its bytes. */
    private static final int PART_OVERHEAD = 128;

    /** The bytes of short events that may wait without reserved memory. More is reserved in steps of this size. */
    private static final long RESERVATION_STEP = 256 << 10;

    private final InferenceServer server;
    private final InferRequest inferRequest;
    private final HttpServerRequest request;
    private final HttpServerResponse http;
    private final EventLoopExecutor loop;
    private final ResponseTaskQueue tasks;
    private final GenerateResponseWriter writer;
    private final JsonMemoryLimiter jsonMemory;
    private final long maxInlineBytes;
    private final AtomicLong unsent = new AtomicLong();
    /** Checked when the transport has sent bytes, and when responses are dropped from then on. */
    private final FlowSignal flow = new FlowSignal(this::isOpen);

    private final QueuedBytes queued;
    /** The bytes of short events that wait. */
    private long waiting;

    private long reserved;
    /** {@code true} once further responses are dropped. */
    private volatile boolean cancelled;

    private Cancellation cancellation = () -> {};

    /** Prepares a request. A worker writes events that are longer than {@code maxInlineBytes}. */
    GenerateStreamExchange(
            InferenceServer server,
            InferRequest inferRequest,
            HttpServerRequest request,
            EventLoopExecutor loop,
            GenerateResponseWriter writer,
            JsonMemoryLimiter jsonMemory,
            long maxInlineBytes) {
        this.server = server;
        this.inferRequest = inferRequest;
        this.request = request;
        this.http = request.response();
        this.queued = QueuedBytes.of(request.connection());
        this.loop = loop;
        this.tasks = new ResponseTaskQueue(loop, this::abort);
        this.writer = writer;
        this.jsonMemory = jsonMemory;
        this.maxInlineBytes = maxInlineBytes;
    }

    /** Submits the request, which is cancelled when the client disconnects. */
    void start() {
        http.closeHandler(left -> cancel());
        cancellation = server.infer(inferRequest, this);
    }

    @Override
    public void onResponse(InferResponse response) {
        long cost = OVERHEAD + GenerateResponseWriter.jsonBytes(response);
        if (cancelled || !admit(cost)) {
            response.close();
            return;
        }
        if (!tasks.add(() -> send(response, cost))) {
            drop(); // the event loop has stopped
            response.close();
        }
    }

    @Override
    public void onFailedResponse(InferenceException error) {
        long cost = OVERHEAD + error.publicMessage().length();
        if (!cancelled && admit(cost)) {
            tasks.add(() -> send(error, cost));
        }
    }

    @Override
    public void onCompleted() {
        tasks.add(this::end);
    }

    @Override
    public void onError(InferenceException error) {
        tasks.add(() -> fail(error));
    }

    @Override
    public void onRefused(InferenceException error) {
        InferenceException failure = failed(error);
        tasks.add(() -> HttpErrors.send(http, failure, ContentTypes.JSON));
    }

    /** Counts bytes to send; aborts the connection beyond the limit. */
    private boolean admit(long cost) {
        long before = unsent.getAndAdd(cost);
        if (before == 0 || before + cost <= MAX_UNSENT_BYTES) {
            return true;
        }
        drop();
        loop.execute(this::abortConnection);
        return false;
    }

    private void send(InferResponse response, long charged) {
        if (cancelled || isOver()) {
            unsent.addAndGet(-charged);
            response.close();
            return;
        }
        boolean last = response.isFinal();
        if (charged - OVERHEAD > maxInlineBytes) {
            GenerateWriteTask written =
                    new GenerateWriteTask(response, () -> cancelled || http.closed(), jsonMemory, true);
            tasks.runOnWorker(written, () -> sendChunks(written, charged, last));
            return;
        }
        unsent.addAndGet(-charged);
        Buffer event;
        try {
            event = writer.writeEvent(response);
        } catch (InferenceException e) {
            fail(e);
            cancel();
            return;
        }
        if (write(event)) {
            endAfter(last);
        }
    }

    /** Sends the error of one response, after which others may follow. */
    private void send(InferenceException error, long charged) {
        unsent.addAndGet(-charged);
        if (cancelled || isOver()) {
            return;
        }
        InferenceException failure = failed(error);
        if (!http.headWritten()) {
            HttpErrors.setStatus(http, failure);
        }
        write(GenerateResponseWriter.errorEvent(failure));
    }

    /** Writes a short event; aborts the connection beyond the limit. */
    private boolean write(Buffer event) {
        int cost = event.length() + PART_OVERHEAD;
        if (!admit(cost) || !reserve(cost)) {
            return false;
        }
        begin();
        write(event, () -> release(cost));
        return true;
    }

    /** Reserves memory for waiting short events; aborts the connection if there is none. */
    private boolean reserve(int cost) {
        waiting += cost;
        try {
            while (waiting - reserved > RESERVATION_STEP) {
                jsonMemory.reserve(RESERVATION_STEP);
                reserved += RESERVATION_STEP;
            }
            return true;
        } catch (InferenceException e) {
            release(cost);
            abortConnection();
            return false;
        }
    }

    private void release(int cost) {
        waiting -= cost;
        while (reserved > 0 && waiting <= reserved) {
            jsonMemory.release(RESERVATION_STEP);
            reserved -= RESERVATION_STEP;
        }
    }

    private void sendChunks(GenerateWriteTask written, long charged, boolean last) {
        unsent.addAndGet(-charged);
        JsonChunks text = written.chunks();
        if (cancelled || isOver()) {
            text.close();
        } else if (written.error().isPresent()) {
            fail(written.error().get());
            cancel();
        } else {
            List<ByteBuf> pieces = text.take();
            if (admit(text.size() + (long) PART_OVERHEAD * pieces.size())) {
                write(pieces);
                endAfter(last);
            } else {
                pieces.forEach(ByteBuf::release);
            }
        }
    }

    private void write(List<ByteBuf> pieces) {
        int written = 0;
        try {
            begin();
            for (; written < pieces.size(); written++) {
                ByteBuf piece = pieces.get(written);
                write(BufferInternal.buffer(piece), piece::release);
            }
        } finally {
            pieces.subList(written, pieces.size()).forEach(ByteBuf::release);
        }
    }

    private void write(Buffer part, Runnable release) {
        int cost = part.length() + PART_OVERHEAD;
        queued.add(cost);
        http.write(part).onComplete(sent -> {
            queued.add(-cost);
            unsent.addAndGet(-cost);
            release.run();
            flow.check();
        });
    }

    private void endAfter(boolean last) {
        if (last) {
            end();
        }
    }

    private void fail(InferenceException error) {
        if (isOver()) {
            return;
        }
        InferenceException failure = failed(error);
        if (!http.headWritten()) {
            HttpErrors.setStatus(http, failure);
        }
        begin();
        http.end(GenerateResponseWriter.errorEvent(failure));
    }

    private void abort() {
        cancel();
        fail(JsonFields.internal("internal error"));
    }

    private void end() {
        if (!isOver()) {
            begin();
            http.end();
        }
    }

    private void begin() {
        if (!http.headWritten()) {
            http.putHeader(HttpHeaders.CONTENT_TYPE, ContentTypes.EVENT_STREAM).setChunked(true);
        }
    }

    private boolean isOver() {
        return http.ended() || http.closed();
    }

    private void cancel() {
        drop();
        cancellation.cancel();
    }

    /** Drops further responses. The flow is open from now on. */
    private void drop() {
        cancelled = true;
        flow.check();
    }

    private boolean isOpen() {
        return cancelled || unsent.get() < OPEN_BYTES;
    }

    private void abortConnection() {
        cancel();
        LOG.atDebug()
                .addKeyValue("path", request.path())
                .addKeyValue("bytes", unsent)
                .log("client does not read");
        HttpErrors.abort(request.connection());
    }

    @Override
    public RequestProtocol protocol() {
        return RequestProtocol.HTTP;
    }

    @Override
    public ResponseFlow flow() {
        return flow;
    }

    private InferenceException failed(InferenceException error) {
        return RequestFailures.fail(server, inferRequest.id(), inferRequest.model(), error);
    }
}
