package dev.nereid.http.body;

import dev.nereid.api.InferenceException;
import dev.nereid.api.InferenceServer;
import dev.nereid.api.Quoted;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.http.HttpServerRequest;
import io.vertx.core.http.HttpServerResponse;
import java.lang.foreign.MemorySegment;
import java.util.function.Function;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Receives a JSON request body and passes it to a reader. Confined to one event loop, except that a worker reads a long
 * text. Owns its memory.
 */
public final class JsonBodyReceiver {
    private static final Logger LOG = LoggerFactory.getLogger(JsonBodyReceiver.class);

    private static final long ALWAYS_ON_WORKER = -1;

    private final InferenceServer server;
    private final HttpServerRequest request;
    private final HttpServerResponse response;
    private final RequestBody body;
    private final EventLoopExecutor loop;
    private final BodyLimits limits;
    private final long maxInlineBytes;
    private final Function<MemorySegment, Prepared> reader;
    /** {@code true} if the body is not read any more. */
    private boolean refused;
    /** {@code true} while a worker reads the body, which must not be closed meanwhile. */
    private boolean isReadOnWorker;

    /**
     * The result of reading a body, and its cleanup. Immutable.
     *
     * @param next processes the result on the event loop
     * @param discard releases its memory if the client left meanwhile
     */
    public record Prepared(Runnable next, Runnable discard) {
        /** Returns a result that holds no memory. */
        public static Prepared of(Runnable next) {
            return new Prepared(next, () -> {});
        }
    }

    private JsonBodyReceiver(
            InferenceServer server,
            HttpServerRequest request,
            RequestBody body,
            EventLoopExecutor loop,
            BodyLimits limits,
            long maxInlineBytes,
            Function<MemorySegment, Prepared> reader) {
        this.server = server;
        this.request = request;
        this.response = request.response();
        this.body = body;
        this.loop = loop;
        this.limits = limits;
        this.maxInlineBytes = maxInlineBytes;
        this.reader = reader;
    }

    /**
     * Receives a body, and responds to one that is refused.
     *
     * @param request the request, with an unread body
     * @param server the server; its tensor memory holds the body
     * @param reader reads the body, on the event loop or, if the text is long, on a worker; the bytes are valid until
     *     it returns. Its exceptions become error responses
     */
    public static void receive(
            HttpServerRequest request,
            InferenceServer server,
            BodyLimits limits,
            EventLoopExecutor loop,
            Function<MemorySegment, Prepared> reader) {
        receive(request, server, limits, loop, limits.maxInlineBytes(), reader);
    }

    /** Receives a body, as {@link #receive} does, that a worker reads whatever its length. */
    public static void receiveOnWorker(
            HttpServerRequest request,
            InferenceServer server,
            BodyLimits limits,
            EventLoopExecutor loop,
            Function<MemorySegment, Prepared> reader) {
        receive(request, server, limits, loop, ALWAYS_ON_WORKER, reader);
    }

    private static void receive(
            HttpServerRequest request,
            InferenceServer server,
            BodyLimits limits,
            EventLoopExecutor loop,
            long maxInlineBytes,
            Function<MemorySegment, Prepared> reader) {
        RequestBodyHeaders headers;
        try {
            headers = RequestBodyHeaders.ofJson(request, limits);
        } catch (InferenceException e) {
            DiscardedBody.refuse(request, refuse(server, request, e), ContentTypes.JSON, limits);
            return;
        }
        new JsonBodyReceiver(
                        server,
                        request,
                        new RequestBody(server.memory(), headers, limits),
                        loop,
                        limits,
                        maxInlineBytes,
                        reader)
                .start();
    }

    private void start() {
        response.closeHandler(left -> {
            refused = true;
            if (!isReadOnWorker) {
                body.close();
            }
        });
        request.handler(this::append);
        request.endHandler(end -> read());
        DiscardedBody.sendContinue(request);
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
            DiscardedBody.refuse(request, refuse(server, request, e), ContentTypes.JSON, limits);
        } catch (RuntimeException | Error e) {
            refused = true;
            body.close();
            LOG.atError().addKeyValue("path", request.path()).setCause(e).log("request not handled");
            HttpErrors.sendInternal(request);
            DiscardedBody.discard(request, limits);
        }
    }

    private static InferenceException refuse(InferenceServer server, HttpServerRequest request, InferenceException e) {
        return RequestFailures.refuse(server, "", Quoted.text(String.valueOf(request.path())), e);
    }

    private void read() {
        if (refused) {
            return;
        }
        if (body.size() <= maxInlineBytes) {
            resume(prepare());
            return;
        }
        isReadOnWorker = true;
        if (!loop.executeOnWorker(this::readOnWorker)) {
            body.close();
        }
    }

    private void readOnWorker() {
        Prepared read = prepare();
        boolean accepted = loop.execute(() -> {
            isReadOnWorker = false;
            resume(read);
        });
        if (!accepted) {
            body.close();
            read.discard().run();
        }
    }

    private Prepared prepare() {
        try {
            return reader.apply(body.bytes());
        } catch (InferenceException e) {
            InferenceException error = refuse(server, request, e);
            return Prepared.of(() -> HttpErrors.send(response, error, ContentTypes.JSON));
        } catch (RuntimeException | Error e) {
            LOG.atError().addKeyValue("path", request.path()).setCause(e).log("request not handled");
            return Prepared.of(() -> HttpErrors.sendInternal(response));
        }
    }

    private void resume(Prepared read) {
        body.close();
        if (refused) {
            read.discard().run();
            return;
        }
        try {
            read.next().run();
        } catch (InferenceException e) {
            HttpErrors.send(response, refuse(server, request, e), ContentTypes.JSON);
        } catch (RuntimeException | Error e) {
            LOG.atError().addKeyValue("path", request.path()).setCause(e).log("request not handled");
            HttpErrors.sendInternal(response);
        }
    }
}
