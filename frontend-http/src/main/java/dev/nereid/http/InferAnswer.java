package dev.nereid.http;

import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelRef;
import dev.nereid.api.RequestProtocol;
import dev.nereid.api.ResponseObserver;
import dev.nereid.spi.ErrorCode;
import io.vertx.core.http.HttpServerRequest;
import io.vertx.core.http.HttpServerResponse;
import java.util.Optional;
import java.util.concurrent.CancellationException;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The answer to one inference: comes on whichever thread and is written on the event loop. Confined to that, but for the
 * observer's methods, which hand over to it. If the client left, the answer is closed unseen.
 *
 * <p>A long JSON text would keep everybody else on the event loop waiting. A worker writes it, on the heap, and checks
 * between its pieces that the client is still there; the event loop then sends the pieces. The connection's next answer
 * waits for this one, whoever writes it.
 */
final class InferAnswer implements ResponseObserver {
    private static final Logger log = LoggerFactory.getLogger(InferAnswer.class);
    private static final String NO_MEMORY =
            "not enough memory to write the response as JSON; ask for its outputs as binary data";
    private static final String TRUNCATED = "shared memory of an input was truncated before the response was written";

    private final InferHandler handler;
    private final HttpServerRequest request;
    private final HttpServerResponse http;
    private final ModelRef model;
    private final String id;
    private final AnswerForm form;
    /** Responses that came although more than one is wrong. Touched by one thread at a time, as the observer is. */
    private int surplus;

    InferAnswer(InferHandler handler, HttpServerRequest request, ModelRef model, String id, AnswerForm form) {
        this.handler = handler;
        this.request = request;
        this.http = request.response();
        this.model = model;
        this.id = id;
        this.form = form;
    }

    @Override
    public void onResponse(InferResponse response) {
        if (!response.isLast() || surplus > 0) {
            surplus++;
            response.close();
            if (response.isLast()) {
                fail(JsonFields.internal("expected a single response, got " + surplus));
            }
            return;
        }
        onEventLoop(response, null);
    }

    @Override
    public void onFailedResponse(InferenceException error) {
        surplus++;
    }

    @Override
    public void onEnd() {
        fail(JsonFields.internal("expected a single response, got " + surplus));
    }

    @Override
    public void onError(InferenceException error) {
        fail(error);
    }

    @Override
    public void onRefused(InferenceException error) {
        RequestFailures.log(id, model, error);
        form.memory().answered();
        // Clients of the reference server see these types: that of a request refused, that of one that failed.
        if (handler.isOnEventLoop()) {
            HttpErrors.send(http, error, ContentTypes.JSON);
        } else {
            handler.loop().run(() -> HttpErrors.send(http, error, ContentTypes.JSON));
        }
    }

    @Override
    public RequestProtocol protocol() {
        return RequestProtocol.HTTP;
    }

    private void fail(InferenceException error) {
        onEventLoop(null, RequestFailures.fail(handler.server(), id, model, error));
    }

    private void onEventLoop(@Nullable InferResponse response, @Nullable InferenceException error) {
        if (response != null && form.work(response) > handler.limits().maxInlineBytes()) {
            writeElsewhere(response);
        } else if (handler.isOnEventLoop()) {
            answer(response, error);
        } else if (!handler.loop().run(() -> answer(response, error)) && response != null) {
            response.close();
        }
    }

    private void answer(@Nullable InferResponse response, @Nullable InferenceException error) {
        form.memory().answered();
        if (response != null) {
            send(response, () -> handler.writer().write(http, response, form));
        } else if (error != null) {
            HttpErrors.sendOrAbort(request, () -> HttpErrors.send(http, error, ContentTypes.TEXT));
        }
    }

    /** Has a worker write the text, and the event loop send it. */
    private void writeElsewhere(InferResponse response) {
        if (!handler.loop().runElsewhere(() -> writeText(response))) {
            response.close();
        }
    }

    private void writeText(InferResponse response) {
        TextPieces text = new TextPieces(http::closed, handler.textMemory());
        AtomicReference<InferResponseWriter.Written> written = new AtomicReference<>();
        Optional<Failure> failure = attempt(() -> {
            JsonWriter json = new JsonWriter(text);
            long binaryBytes = new InferResponseText(json).write(response, form.outputs());
            json.flush();
            written.set(InferResponseWriter.collect(response, form, text, binaryBytes));
        });
        text.close(); // what was not collected
        InferResponseWriter.Written body = written.get();
        boolean handedOver = body == null
                ? handler.loop().run(() -> fail(response, failure.orElseThrow()))
                : handler.loop().run(() -> sendWritten(response, body));
        if (!handedOver) {
            response.close();
            if (body != null) {
                body.body().close();
            }
        }
    }

    private void sendWritten(InferResponse response, InferResponseWriter.Written written) {
        form.memory().answered();
        if (http.closed()) {
            written.body().close();
        }
        send(response, () -> {
            try {
                handler.writer().send(request, response, form, written);
            } catch (RuntimeException | Error e) {
                written.body().close();
                throw e;
            }
        });
    }

    private void send(InferResponse response, Runnable writing) {
        if (http.closed()) {
            response.close();
        } else {
            attempt(writing).ifPresent(failure -> fail(response, failure));
        }
    }

    private void fail(InferResponse response, Failure failure) {
        form.memory().answered();
        response.close();
        RequestFailures.log(id, model, failure.error());
        HttpErrors.sendOrAbort(request, () -> HttpErrors.send(http, failure.error(), failure.contentType()));
    }

    /**
     * What the client is told instead of outputs that could not be written. Immutable.
     *
     * @param error what went wrong
     * @param contentType how errors of this kind are labelled
     */
    private record Failure(InferenceException error, CharSequence contentType) {}

    private Optional<Failure> attempt(Runnable writing) {
        try {
            writing.run();
            return Optional.empty();
        } catch (CancellationException e) { // the client left: nobody will see this
            return Optional.of(new Failure(JsonFields.internal("request was cancelled"), ContentTypes.TEXT));
        } catch (InferenceException e) {
            return Optional.of(new Failure(e, ContentTypes.TEXT));
        } catch (OutOfMemoryError e) { // most likely of the text, though other threads fill the heap too
            return Optional.of(
                    new Failure(new InferenceException(ErrorCode.UNAVAILABLE, NO_MEMORY), ContentTypes.JSON));
        } catch (InternalError e) { // how the JVM tells that mapped memory is not there any more
            log.atDebug().addKeyValue("model", model).setCause(e).log("shared memory not readable");
            return Optional.of(new Failure(JsonFields.internal(TRUNCATED), ContentTypes.TEXT));
        } catch (RuntimeException | Error e) {
            log.atError().addKeyValue("model", model).setCause(e).log("response not written");
            return Optional.of(new Failure(JsonFields.internal("internal error"), ContentTypes.JSON));
        }
    }
}
