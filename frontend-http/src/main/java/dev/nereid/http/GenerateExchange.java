package dev.nereid.http;

import dev.nereid.api.Cancellation;
import dev.nereid.api.InferCall;
import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InferenceServer;
import dev.nereid.api.RequestProtocol;
import dev.nereid.api.ResponseObserver;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.http.HttpHeaders;
import io.vertx.core.http.HttpServerRequest;
import io.vertx.core.http.HttpServerResponse;
import org.jspecify.annotations.Nullable;

/**
 * One call whose only response is the answer. Confined to its event loop, but for the observer's methods, which hand
 * over to it.
 *
 * <p>The first response is kept as text until the call ends. The second decides the answer: the call is withdrawn, since
 * a model may go on for ever.
 */
final class GenerateExchange implements ResponseObserver {
    private static final String NOT_ONE =
            "generate expects model to produce exactly 1 response, use generate stream for"
                    + " model that generates various number of responses";

    private final InferenceServer server;
    private final InferCall call;
    private final HttpServerRequest request;
    private final HttpServerResponse http;
    private final AnswerSteps steps;
    private final GenerateResponseWriter writer;
    private final TextMemory memory;
    private final long maxInlineBytes;
    private Cancellation cancellation = () -> {};
    /** The response, as one text or, if it is long, as pieces. */
    private @Nullable Buffer text;

    private @Nullable TextPieces pieces;
    /** The error of the first response, if that failed. */
    private @Nullable InferenceException failure;
    /** How many responses came. Touched by one thread at a time, as the observer is. */
    private long count;

    /**
     * Prepares a call.
     *
     * @param server the server that infers
     * @param call what to infer
     * @param request the request
     * @param loop the event loop
     * @param writer writes the answer
     * @param memory bounds the memory of long texts
     * @param maxInlineBytes a longer text is written by a worker
     */
    GenerateExchange(
            InferenceServer server,
            InferCall call,
            HttpServerRequest request,
            EventLoop loop,
            GenerateResponseWriter writer,
            TextMemory memory,
            long maxInlineBytes) {
        this.server = server;
        this.call = call;
        this.request = request;
        this.http = request.response();
        this.steps = new AnswerSteps(loop, this::breakOff);
        this.writer = writer;
        this.memory = memory;
        this.maxInlineBytes = maxInlineBytes;
    }

    /** Makes the call. A client that leaves withdraws it. */
    void start() {
        http.closeHandler(left -> {
            dropPieces();
            cancellation.cancel();
        });
        cancellation = server.infer(call, this);
    }

    @Override
    public void onResponse(InferResponse response) {
        count++;
        boolean last = response.isLast();
        if (count > 1) {
            response.close();
            if (count == 2) {
                steps.add(this::refuseMore);
            }
            return;
        }
        if (!steps.add(() -> keep(response))) {
            response.close();
        }
        if (last) {
            steps.add(this::finish);
        }
    }

    @Override
    public void onFailedResponse(InferenceException error) {
        count++;
        if (count == 1) {
            InferenceException told = failed(error);
            steps.add(() -> {
                failure = told;
                text = HttpErrors.body(told.publicMessage());
            });
        } else if (count == 2) {
            steps.add(this::refuseMore);
        }
    }

    @Override
    public void onEnd() {
        steps.add(this::finish);
    }

    @Override
    public void onError(InferenceException error) {
        InferenceException told = failed(error);
        steps.add(() -> {
            dropPieces();
            HttpErrors.send(http, told, ContentTypes.JSON);
        });
    }

    private void keep(InferResponse response) {
        if (GenerateResponseWriter.jsonBytes(response) > maxInlineBytes) {
            LongText written = new LongText(response, http::closed, memory, false);
            steps.doElsewhere(written, () -> {
                pieces = written.text();
                written.error().ifPresent(this::fail);
                if (http.closed()) {
                    dropPieces();
                }
            });
            return;
        }
        try {
            text = writer.write(response);
        } catch (InferenceException e) {
            fail(e);
        }
    }

    private void breakOff() {
        fail(JsonFields.internal("internal error"));
    }

    private void fail(InferenceException error) {
        HttpErrors.send(http, failed(error), ContentTypes.JSON);
        cancellation.cancel();
    }

    private void refuseMore() {
        text = HttpErrors.body(NOT_ONE);
        dropPieces();
        finish();
        cancellation.cancel();
    }

    private void dropPieces() {
        if (pieces != null) {
            pieces.close();
            pieces = null;
        }
    }

    private void finish() {
        if (http.ended() || http.closed()) {
            dropPieces();
            return;
        }
        http.putHeader(HttpHeaders.CONTENT_TYPE, ContentTypes.JSON);
        if (failure != null) {
            HttpErrors.setStatus(http, failure);
        }
        if (pieces != null) {
            sendLong(pieces);
        } else {
            http.end(text == null ? HttpErrors.body(NOT_ONE) : text);
        }
    }

    private void sendLong(TextPieces whole) {
        LargeBody body = new LargeBody(whole.take(), TextPieces.PIECE_SIZE);
        body.count(QueuedBytes.of(request.connection()));
        body.send(http, () -> {});
    }

    @Override
    public RequestProtocol protocol() {
        return RequestProtocol.HTTP;
    }

    private InferenceException failed(InferenceException error) {
        return RequestFailures.fail(server, call.id(), call.model(), error);
    }
}
