package dev.nereid.http.generate;

import dev.nereid.api.Cancellation;
import dev.nereid.api.InferRequest;
import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InferenceServer;
import dev.nereid.api.RequestProtocol;
import dev.nereid.api.ResponseObserver;
import dev.nereid.http.body.ContentTypes;
import dev.nereid.http.body.EventLoopExecutor;
import dev.nereid.http.body.HttpErrors;
import dev.nereid.http.body.QueuedBytes;
import dev.nereid.http.body.RequestFailures;
import dev.nereid.http.body.ResponseBody;
import dev.nereid.http.json.JsonChunks;
import dev.nereid.http.json.JsonFields;
import dev.nereid.http.json.JsonMemoryLimiter;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.http.HttpHeaders;
import io.vertx.core.http.HttpServerRequest;
import io.vertx.core.http.HttpServerResponse;
import org.jspecify.annotations.Nullable;

/**
 * Sends the only response of one {@code generate} request. Confined to its event loop, but for the observer's methods,
 * which submit tasks to it.
 *
 * <p>The first response is kept as text until the request completes. A second one is an error that cancels the request,
 * since a model may send responses without end.
 */
final class GenerateExchange implements ResponseObserver {
    private static final String NOT_ONE_RESPONSE =
            "generate expects model to produce exactly 1 response, use generate stream for"
                    + " model that generates various number of responses";

    private final InferenceServer server;
    private final InferRequest inferRequest;
    private final HttpServerRequest request;
    private final HttpServerResponse http;
    private final ResponseTaskQueue tasks;
    private final GenerateResponseWriter writer;
    private final JsonMemoryLimiter jsonMemory;
    private final long maxInlineBytes;
    private Cancellation cancellation = () -> {};
    /** The response, as one text or, if it is long, as pieces. */
    private @Nullable Buffer responseJson;

    private @Nullable JsonChunks chunks;
    /** The error of the first response, if that failed. */
    private @Nullable InferenceException failure;
    /** The number of responses. Used by one thread at a time, as the observer is. */
    private long count;

    /** Prepares a request. A worker writes texts that are longer than {@code maxInlineBytes}. */
    GenerateExchange(
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
        this.tasks = new ResponseTaskQueue(loop, this::abort);
        this.writer = writer;
        this.jsonMemory = jsonMemory;
        this.maxInlineBytes = maxInlineBytes;
    }

    /** Submits the request, which is cancelled when the client disconnects. */
    void start() {
        http.closeHandler(left -> {
            releaseChunks();
            cancellation.cancel();
        });
        cancellation = server.infer(inferRequest, this);
    }

    @Override
    public void onResponse(InferResponse response) {
        count++;
        boolean last = response.isFinal();
        if (count > 1) {
            response.close();
            if (count == 2) {
                tasks.add(this::refuseSecondResponse);
            }
            return;
        }
        if (!tasks.add(() -> storeResponse(response))) {
            response.close();
        }
        if (last) {
            tasks.add(this::finish);
        }
    }

    @Override
    public void onFailedResponse(InferenceException error) {
        count++;
        if (count == 1) {
            InferenceException translated = failed(error);
            tasks.add(() -> {
                failure = translated;
                responseJson = HttpErrors.body(translated.publicMessage());
            });
        } else if (count == 2) {
            tasks.add(this::refuseSecondResponse);
        }
    }

    @Override
    public void onCompleted() {
        tasks.add(this::finish);
    }

    @Override
    public void onError(InferenceException error) {
        InferenceException translated = failed(error);
        tasks.add(() -> {
            releaseChunks();
            HttpErrors.send(http, translated, ContentTypes.JSON);
        });
    }

    private void storeResponse(InferResponse response) {
        if (GenerateResponseWriter.jsonBytes(response) > maxInlineBytes) {
            GenerateWriteTask written = new GenerateWriteTask(response, http::closed, jsonMemory, false);
            tasks.runOnWorker(written, () -> {
                chunks = written.chunks();
                written.error().ifPresent(this::fail);
                if (http.closed()) {
                    releaseChunks();
                }
            });
            return;
        }
        try {
            responseJson = writer.write(response);
        } catch (InferenceException e) {
            fail(e);
        }
    }

    private void abort() {
        fail(JsonFields.internal("internal error"));
    }

    private void fail(InferenceException error) {
        HttpErrors.send(http, failed(error), ContentTypes.JSON);
        cancellation.cancel();
    }

    private void refuseSecondResponse() {
        responseJson = HttpErrors.body(NOT_ONE_RESPONSE);
        releaseChunks();
        finish();
        cancellation.cancel();
    }

    private void releaseChunks() {
        if (chunks != null) {
            chunks.close();
            chunks = null;
        }
    }

    private void finish() {
        if (http.ended() || http.closed()) {
            releaseChunks();
            return;
        }
        http.putHeader(HttpHeaders.CONTENT_TYPE, ContentTypes.JSON);
        if (failure != null) {
            HttpErrors.setStatus(http, failure);
        }
        if (chunks != null) {
            sendChunks(chunks);
        } else {
            http.end(responseJson == null ? HttpErrors.body(NOT_ONE_RESPONSE) : responseJson);
        }
    }

    private void sendChunks(JsonChunks whole) {
        ResponseBody body = new ResponseBody(whole.take(), JsonChunks.CHUNK_SIZE);
        body.count(QueuedBytes.of(request.connection()));
        body.send(http, () -> {});
    }

    @Override
    public RequestProtocol protocol() {
        return RequestProtocol.HTTP;
    }

    private InferenceException failed(InferenceException error) {
        return RequestFailures.fail(server, inferRequest.id(), inferRequest.model(), error);
    }
}
