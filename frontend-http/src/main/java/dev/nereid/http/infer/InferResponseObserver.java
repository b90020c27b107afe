package dev.nereid.http.infer;

import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelRef;
import dev.nereid.api.RequestProtocol;
import dev.nereid.api.ResponseObserver;
import dev.nereid.http.body.ContentTypes;
import dev.nereid.http.body.HttpErrors;
import dev.nereid.http.body.RequestFailures;
import dev.nereid.http.json.JsonChunks;
import dev.nereid.http.json.JsonFields;
import dev.nereid.http.json.JsonWriter;
import dev.nereid.spi.ErrorCode;
import io.vertx.core.http.HttpServerRequest;
import io.vertx.core.http.HttpServerResponse;
import java.util.concurrent.CancellationException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Writes the response of one inference to the client. Confined to the event loop, but for the observer's methods, which
 * submit tasks to it. If the client left, the response is closed without being written.
 *
 * <p>A long JSON text would block the event loop. A worker writes it, on the heap, and checks between its chunks that
 * the client is connected; the event loop then sends the chunks. The connection's next response waits for this one in
 * either case.
 */
final class InferResponseObserver implements ResponseObserver {
    private static final Logger LOG = LoggerFactory.getLogger(InferResponseObserver.class);
    private static final String NO_MEMORY =
            "not enough memory to write the response as JSON; request its outputs as binary data";

    private final InferHandler handler;
    private final HttpServerRequest request;
    private final HttpServerResponse http;
    private final ModelRef model;
    private final String id;
    private final ResponseFormat format;
    /** The number of responses beyond the only valid one. Used by one thread at a time, as the observer is. */
    private int surplus;

    InferResponseObserver(
            InferHandler handler, HttpServerRequest request, ModelRef model, String id, ResponseFormat format) {
        this.handler = handler;
        this.request = request;
        this.http = request.response();
        this.model = model;
        this.id = id;
        this.format = format;
    }

    @Override
    public void onResponse(InferResponse response) {
        if (!response.isFinal() || surplus > 0) {
            surplus++;
            response.close();
            if (response.isFinal()) {
                fail(JsonFields.internal("expected a single response, got " + surplus));
            }
            return;
        }
        if (format.bytesToWrite(response) > handler.limits().maxInlineBytes()) {
            writeOnWorker(response);
        } else if (handler.isOnEventLoop()) {
            write(response);
        } else if (!handler.loop().execute(() -> write(response))) {
            response.close();
        }
    }

    @Override
    public void onFailedResponse(InferenceException error) {
        surplus++;
    }

    @Override
    public void onCompleted() {
        fail(JsonFields.internal("expected a single response, got " + surplus));
    }

    @Override
    public void onError(InferenceException error) {
        fail(error);
    }

    @Override
    public void onRefused(InferenceException error) {
        RequestFailures.log(id, model, error);
        format.memory().releaseRegistrations();
        // The content types of the reference server: JSON for a refused request, text for a failed one.
        if (handler.isOnEventLoop()) {
            HttpErrors.send(http, error, ContentTypes.JSON);
        } else {
            handler.loop().execute(() -> HttpErrors.send(http, error, ContentTypes.JSON));
        }
    }

    @Override
    public RequestProtocol protocol() {
        return RequestProtocol.HTTP;
    }

    private void fail(InferenceException error) {
        InferenceException failure = RequestFailures.fail(handler.server(), id, model, error);
        if (handler.isOnEventLoop()) {
            send(failure);
        } else {
            handler.loop().execute(() -> send(failure));
        }
    }

    private void send(InferenceException failure) {
        format.memory().releaseRegistrations();
        HttpErrors.sendOrAbort(request, () -> HttpErrors.send(http, failure, ContentTypes.TEXT));
    }

    private void write(InferResponse response) {
        format.memory().releaseRegistrations();
        if (http.closed()) {
            response.close();
            return;
        }
        try {
            handler.writer().write(http, response, format);
        } catch (RuntimeException | Error e) {
            fail(response, failure(e));
        }
    }

    /** Writes the text on a worker, and sends it on the event loop. */
    private void writeOnWorker(InferResponse response) {
        if (!handler.loop().executeOnWorker(() -> writeJson(response))) {
            response.close();
        }
    }

    private void writeJson(InferResponse response) {
        JsonChunks text = new JsonChunks(http::closed, handler.jsonMemory());
        Runnable next;
        InferResponseWriter.Written written = null;
        try {
            JsonWriter json = new JsonWriter(text);
            long binaryBytes = new InferResponseJson(json).write(response, format.outputs());
            json.flush();
            InferResponseWriter.Written body = InferResponseWriter.collect(response, format, text, binaryBytes);
            written = body;
            next = () -> send(response, body);
        } catch (RuntimeException | Error e) {
            Failure failure = failure(e);
            next = () -> fail(response, failure);
        }
        text.close(); // chunks that were not collected
        if (!handler.loop().execute(next)) {
            response.close();
            if (written != null) {
                written.body().close();
            }
        }
    }

    private void send(InferResponse response, InferResponseWriter.Written written) {
        format.memory().releaseRegistrations();
        if (http.closed()) {
            written.body().close();
            response.close();
            return;
        }
        try {
            handler.writer().send(request, response, format, written);
        } catch (RuntimeException | Error e) {
            written.body().close();
            fail(response, failure(e));
        }
    }

    private void fail(InferResponse response, Failure failure) {
        format.memory().releaseRegistrations();
        response.close();
        RequestFailures.log(id, model, failure.error());
        HttpErrors.sendOrAbort(request, () -> HttpErrors.send(http, failure.error(), failure.contentType()));
    }

    /** An error in place of outputs that could not be written, with the content type of its kind. Immutable. */
    private record Failure(InferenceException error, CharSequence contentType) {}

    private Failure failure(Throwable thrown) {
        return switch (thrown) {
            case CancellationException _ -> // the client is gone
                new Failure(JsonFields.internal("request was cancelled"), ContentTypes.TEXT);
            case InferenceException e -> new Failure(e, ContentTypes.TEXT);
            case OutOfMemoryError _ -> // most likely caused by the text, though other threads allocate too
                new Failure(new InferenceException(ErrorCode.UNAVAILABLE, NO_MEMORY), ContentTypes.JSON);
            default -> {
                LOG.atError().addKeyValue("model", model).setCause(thrown).log("response not written");
                yield new Failure(JsonFields.internal("internal error"), ContentTypes.JSON);
            }
        };
    }
}
