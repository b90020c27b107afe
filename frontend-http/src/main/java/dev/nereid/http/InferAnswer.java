package dev.nereid.http;

import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelRef;
import dev.nereid.api.ResponseObserver;
import dev.nereid.spi.ErrorCode;
import io.vertx.core.http.HttpServerResponse;
import java.util.concurrent.RejectedExecutionException;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The answer to one inference: comes on whichever thread and is written on the event loop. Confined to that, but for the
 * observer's methods, which hand over to it. If the client left, the answer is closed unseen.
 */
final class InferAnswer implements ResponseObserver {
    private static final Logger log = LoggerFactory.getLogger(InferAnswer.class);
    private static final String NO_MEMORY =
            "not enough memory to write the response as JSON; ask for its outputs as binary data";
    private static final String TRUNCATED = "shared memory of an input was truncated before the response was written";

    private final InferHandler handler;
    private final HttpServerResponse http;
    private final ModelRef model;
    private final AnswerForm form;
    /** Responses that came although more than one is wrong. Touched by one thread at a time, as the observer is. */
    private int surplus;

    InferAnswer(InferHandler handler, HttpServerResponse http, ModelRef model, AnswerForm form) {
        this.handler = handler;
        this.http = http;
        this.model = model;
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
    public void onEnd() {
        fail(JsonFields.internal("expected a single response, got " + surplus));
    }

    @Override
    public void onError(InferenceException error) {
        fail(error);
    }

    @Override
    public void onRefused(InferenceException error) {
        // Clients of the reference server see these types: that of a request refused, that of one that failed.
        HttpErrors.send(http, error, HttpErrors.JSON);
    }

    private void fail(InferenceException error) {
        onEventLoop(null, error);
    }

    private void onEventLoop(@Nullable InferResponse response, @Nullable InferenceException error) {
        if (handler.isOnEventLoop()) {
            answer(response, error);
        } else {
            try {
                handler.context().runOnContext(now -> answer(response, error));
            } catch (RejectedExecutionException e) { // the event loop has stopped, and the connection with it
                if (response != null) {
                    response.close();
                }
            }
        }
    }

    private void answer(@Nullable InferResponse response, @Nullable InferenceException error) {
        if (response != null) {
            write(response);
        } else if (error != null) {
            HttpErrors.send(http, error, HttpErrors.TEXT);
        }
    }

    private void write(InferResponse response) {
        if (http.closed()) {
            response.close();
            return;
        }
        try {
            handler.writer().write(http, response, form);
        } catch (InferenceException e) {
            response.close();
            HttpErrors.send(http, e, HttpErrors.TEXT);
        } catch (OutOfMemoryError e) { // most likely of the text, though other threads fill the heap too
            response.close();
            HttpErrors.send(http, new InferenceException(ErrorCode.UNAVAILABLE, NO_MEMORY), HttpErrors.JSON);
        } catch (InternalError e) { // how the JVM tells that mapped memory is not there any more
            response.close();
            log.atDebug().addKeyValue("model", model).setCause(e).log("shared memory not readable");
            HttpErrors.send(http, JsonFields.internal(TRUNCATED), HttpErrors.TEXT);
        } catch (RuntimeException e) {
            response.close();
            log.atError().addKeyValue("model", model).setCause(e).log("response not written");
            HttpErrors.sendInternal(http);
        }
    }
}
