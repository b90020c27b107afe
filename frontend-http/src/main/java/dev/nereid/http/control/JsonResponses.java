package dev.nereid.http.control;

import static java.util.Objects.requireNonNullElseGet;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import dev.nereid.api.InferenceException;
import dev.nereid.http.body.ContentTypes;
import dev.nereid.http.body.HttpErrors;
import io.vertx.core.Context;
import io.vertx.core.Future;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.http.HttpHeaders;
import io.vertx.core.http.HttpServerRequest;
import io.vertx.core.http.HttpServerResponse;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CompletionException;
import java.util.concurrent.RejectedExecutionException;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Writes and sends JSON responses of control requests. Static functions only. */
final class JsonResponses {
    private static final Logger LOG = LoggerFactory.getLogger(JsonResponses.class);

    private static final JsonFactory JSON = new JsonFactory();

    private JsonResponses() {}

    /** Writes one JSON text. */
    @FunctionalInterface
    interface Body {
        void write(JsonGenerator json) throws IOException;
    }

    static Buffer write(Body body) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (JsonGenerator json = JSON.createGenerator(bytes)) {
            body.write(json);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return Buffer.buffer(bytes.toByteArray());
    }

    /** Writes a string member as UTF-8; Jackson itself would escape characters beyond the basic plane. */
    static void writeString(JsonGenerator json, String name, String value) throws IOException {
        json.writeFieldName(name);
        writeString(json, value);
    }

    static void writeString(JsonGenerator json, String value) throws IOException {
        byte[] utf8 = value.getBytes(StandardCharsets.UTF_8);
        json.writeUTF8String(utf8, 0, utf8.length);
    }

    /** Sends a JSON text, unless the client has left or the response was sent. */
    static void send(HttpServerResponse response, Buffer json) {
        if (!response.ended() && !response.closed()) {
            response.putHeader(HttpHeaders.CONTENT_TYPE, ContentTypes.JSON).end(json);
        }
    }

    static void sendFromWorker(HttpServerRequest request, Context context, Body body) {
        Future<@Nullable Buffer> json;
        try {
            json = context.executeBlocking(() -> write(body), false);
        } catch (RejectedExecutionException e) { // the server stops, and its workers are gone already
            json = Future.succeededFuture().map(_ -> write(body));
        }
        sendWhenDone(request, json);
    }

    /** Sends a JSON text, an empty body for null, or an error when a future completes on the event loop. */
    static void sendWhenDone(HttpServerRequest request, Future<@Nullable Buffer> json) {
        HttpServerResponse response = request.response();
        json.onSuccess(body -> send(response, requireNonNullElseGet(body, Buffer::buffer)))
                .onFailure(failure -> sendFailure(request, failure));
    }

    private static void sendFailure(HttpServerRequest request, Throwable thrown) {
        Throwable failure =
                thrown instanceof CompletionException && thrown.getCause() != null ? thrown.getCause() : thrown;
        if (failure instanceof InferenceException error) {
            HttpErrors.send(request.response(), error, ContentTypes.JSON);
        } else {
            LOG.atError().addKeyValue("path", request.path()).setCause(failure).log("request not handled");
            HttpErrors.sendInternal(request.response());
        }
    }
}
