package dev.nereid.http.control;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.InferenceException;
import dev.nereid.http.body.ContentTypes;
import dev.nereid.http.body.EventLoopExecutor;
import dev.nereid.http.body.HttpErrors;
import io.vertx.core.Vertx;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.http.HttpHeaders;
import io.vertx.core.http.HttpServerResponse;
import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Sends a JSON response that a worker writes. Static functions only. */
final class WorkerResponse {
    private static final Logger log = LoggerFactory.getLogger(WorkerResponse.class);

    private WorkerResponse() {}

    /**
     * Answers a request; called on its event loop.
     *
     * @param text writes the answer, on any thread
     */
    static void send(HttpServerResponse response, Supplier<byte[]> text) {
        EventLoopExecutor loop = new EventLoopExecutor(requireNonNull(Vertx.currentContext(), "context"));
        Runnable work = () -> {
            Runnable sending = write(response, text);
            loop.execute(sending);
        };
        if (!loop.executeOnWorker(work)) {
            write(response, text).run();
        }
    }

    private static Runnable write(HttpServerResponse response, Supplier<byte[]> text) {
        try {
            Buffer body = Buffer.buffer(text.get());
            return () -> {
                if (!response.ended() && !response.closed()) {
                    response.putHeader(HttpHeaders.CONTENT_TYPE, ContentTypes.JSON)
                            .end(body);
                }
            };
        } catch (InferenceException e) {
            return () -> HttpErrors.send(response, e, ContentTypes.JSON);
        } catch (RuntimeException | Error e) {
            log.atError().setCause(e).log("answer not written");
            return () -> HttpErrors.sendInternal(response);
        }
    }
}
