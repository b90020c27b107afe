package dev.nereid.http;

import dev.nereid.api.Cancellation;
import dev.nereid.api.InferCall;
import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InferenceServer;
import dev.nereid.api.ResponseObserver;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.http.HttpHeaders;
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

    private final HttpServerResponse http;
    private final EventLoop loop;
    private final GenerateResponseWriter writer;
    private Cancellation cancellation = () -> {};
    private @Nullable Buffer text;
    /** How many responses came. Touched by one thread at a time, as the observer is. */
    private long count;

    GenerateExchange(HttpServerResponse http, EventLoop loop, GenerateResponseWriter writer) {
        this.http = http;
        this.loop = loop;
        this.writer = writer;
    }

    /** Makes the call. A client that leaves withdraws it. */
    void start(InferenceServer server, InferCall call) {
        http.closeHandler(left -> cancellation.cancel());
        cancellation = server.infer(call, this);
    }

    @Override
    public void onResponse(InferResponse response) {
        count++;
        boolean last = response.isLast();
        if (count > 1) {
            response.close();
            if (count == 2) {
                loop.run(this::refuseMore);
            }
            return;
        }
        if (!loop.run(() -> keep(response))) {
            response.close();
        }
        if (last) {
            loop.run(this::finish);
        }
    }

    @Override
    public void onEnd() {
        loop.run(this::finish);
    }

    @Override
    public void onError(InferenceException error) {
        loop.run(() -> HttpErrors.send(http, error, HttpErrors.JSON));
    }

    private void keep(InferResponse response) {
        try {
            text = writer.write(response);
        } catch (InferenceException e) {
            HttpErrors.send(http, e, HttpErrors.JSON);
            cancellation.cancel();
        }
    }

    private void refuseMore() {
        text = null;
        finish();
        cancellation.cancel();
    }

    private void finish() {
        if (http.ended() || http.closed()) {
            return;
        }
        http.putHeader(HttpHeaders.CONTENT_TYPE, HttpErrors.JSON);
        http.end(text == null ? HttpErrors.body(NOT_ONE) : text);
    }
}
