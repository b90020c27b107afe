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

/**
 * One call whose only response is the answer. Confined to its event loop, but for the observer's methods, which hand
 * over to it.
 *
 * <p>The first response is kept as text until the call ends; further ones are counted and closed.
 */
final class GenerateExchange implements ResponseObserver {
    private static final String NOT_ONE =
            "generate expects model to produce exactly 1 response, use generate stream for"
                    + " model that generates various number of responses";

    private final HttpServerResponse http;
    private final EventLoop loop;
    private final GenerateResponseWriter writer;
    private Buffer text = Buffer.buffer();
    /** How many responses came. Touched by one thread at a time, as the observer is. */
    private long count;

    GenerateExchange(HttpServerResponse http, EventLoop loop, GenerateResponseWriter writer) {
        this.http = http;
        this.loop = loop;
        this.writer = writer;
    }

    /** Makes the call. A client that leaves withdraws it. */
    void start(InferenceServer server, InferCall call) {
        Cancellation cancellation = server.infer(call, this);
        http.closeHandler(left -> cancellation.cancel());
    }

    @Override
    public void onResponse(InferResponse response) {
        count++;
        boolean last = response.isLast();
        boolean first = count == 1;
        if (!first) {
            response.close();
        } else if (!loop.run(() -> keep(response))) {
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
        }
    }

    private void finish() {
        if (http.ended() || http.closed()) {
            return;
        }
        http.putHeader(HttpHeaders.CONTENT_TYPE, HttpErrors.JSON);
        http.end(count == 1 ? text : HttpErrors.body(NOT_ONE));
    }
}
