package dev.nereid.http;

import dev.nereid.api.InferenceException;
import dev.nereid.api.TensorMemory;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.http.HttpServerRequest;
import io.vertx.core.http.HttpServerResponse;
import java.lang.foreign.MemorySegment;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The body of a request that is all JSON: taken in as a whole, within the limits, and then read. Confined to one event
 * loop; owns its memory.
 */
final class JsonBody {
    private static final Logger log = LoggerFactory.getLogger(JsonBody.class);

    private final HttpServerRequest request;
    private final HttpServerResponse response;
    private final RequestBody body;
    private final Consumer<MemorySegment> reader;
    /** Whether the body is no longer of interest. */
    private boolean refused;

    private JsonBody(HttpServerRequest request, RequestBody body, Consumer<MemorySegment> reader) {
        this.request = request;
        this.response = request.response();
        this.body = body;
        this.reader = reader;
    }

    /**
     * Waits for a body. What is wrong with it is answered here.
     *
     * @param request the request, of whose body nothing was read
     * @param memory where to put the body
     * @param options the limits
     * @param reader reads the body, on the event loop; its bytes are valid until it returns. What it throws is answered
     */
    static void receive(
            HttpServerRequest request, TensorMemory memory, HttpOptions options, Consumer<MemorySegment> reader) {
        InferHead head;
        try {
            head = InferHead.ofJson(request, options);
        } catch (InferenceException e) {
            UnwantedBody.refuse(request, e, HttpErrors.JSON);
            return;
        }
        new JsonBody(request, new RequestBody(memory, head, options), reader).start();
    }

    private void start() {
        response.closeHandler(left -> {
            refused = true;
            body.close();
        });
        request.handler(this::append);
        request.endHandler(end -> read());
        UnwantedBody.invite(request);
    }

    private void append(Buffer chunk) {
        if (refused) {
            return;
        }
        try {
            body.append(chunk);
        } catch (InferenceException e) {
            refused = true;
            body.close();
            UnwantedBody.refuse(request, e, HttpErrors.JSON);
        }
    }

    private void read() {
        if (refused) {
            return;
        }
        try (body) {
            reader.accept(body.bytes());
        } catch (InferenceException e) {
            HttpErrors.send(response, e, HttpErrors.JSON);
        } catch (RuntimeException e) {
            log.atError().addKeyValue("path", request.path()).setCause(e).log("request not handled");
            HttpErrors.sendInternal(response);
        }
    }
}
