package dev.nereid.http.infer;

import dev.nereid.api.InferenceException;
import dev.nereid.api.InferenceServer;
import dev.nereid.api.ModelMetadata;
import dev.nereid.api.ModelRef;
import dev.nereid.api.Quoted;
import dev.nereid.http.body.BodyLimits;
import dev.nereid.http.body.ContentTypes;
import dev.nereid.http.body.DiscardedBody;
import dev.nereid.http.body.EventLoopExecutor;
import dev.nereid.http.body.HttpErrors;
import dev.nereid.http.body.RequestBodyHeaders;
import dev.nereid.http.body.RequestFailures;
import dev.nereid.http.json.JsonMemoryLimiter;
import dev.nereid.spi.ErrorCode;
import io.vertx.core.Context;
import io.vertx.core.http.HttpServerRequest;
import java.util.Optional;
import java.util.regex.Pattern;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Handles {@code POST /v2/models/{name}/infer}. Confined to one event loop. */
public final class InferHandler {
    private static final Logger LOG = LoggerFactory.getLogger(InferHandler.class);
    private final InferenceServer server;
    private final BodyLimits limits;
    private final Optional<Pattern> forwardedHeaders;
    private final EventLoopExecutor loop;
    private final Thread eventLoop = Thread.currentThread();
    private final InferResponseWriter writer;
    private final JsonMemoryLimiter jsonMemory;
    private final ParsedRequestCache requestCache = new ParsedRequestCache();

    /** Creates the handler of one event loop, on that loop. {@code jsonMemory} limits the memory of long texts. */
    public InferHandler(
            InferenceServer server,
            BodyLimits limits,
            Optional<Pattern> forwardedHeaders,
            Context context,
            JsonMemoryLimiter jsonMemory) {
        this.server = server;
        this.limits = limits;
        this.forwardedHeaders = forwardedHeaders;
        this.jsonMemory = jsonMemory;
        this.loop = new EventLoopExecutor(context);
        this.writer = new InferResponseWriter(context);
    }

    /** Checks model and headers, and then receives the body. */
    public void handle(HttpServerRequest request, String name, String version) {
        try {
            ModelRef model = ModelRef.parse(name, version);
            ModelMetadata metadata = server.models().metadata(model);
            if (metadata.decoupled()) {
                throw new InferenceException(
                        ErrorCode.UNSUPPORTED,
                        "HTTP end point doesn't support models with decoupled transaction policy");
            }
            RequestBodyHeaders headers = RequestBodyHeaders.of(request, limits);
            DiscardedBody.sendContinue(request);
            new InferExchange(this, request, model, metadata, headers).start();
        } catch (InferenceException e) {
            DiscardedBody.refuse(
                    request, RequestFailures.refuse(server, "", Quoted.text(name), e), ContentTypes.TEXT, limits);
        } catch (RuntimeException | Error e) {
            LOG.atError().addKeyValue("model", Quoted.text(name)).setCause(e).log("inference not started");
            HttpErrors.sendInternal(request);
            DiscardedBody.discard(request, limits);
        }
    }

    InferenceServer server() {
        return server;
    }

    BodyLimits limits() {
        return limits;
    }

    Optional<Pattern> forwardedHeaders() {
        return forwardedHeaders;
    }

    EventLoopExecutor loop() {
        return loop;
    }

    boolean isOnEventLoop() {
        return eventLoop.equals(Thread.currentThread());
    }

    ParsedRequestCache requestCache() {
        return requestCache;
    }

    JsonMemoryLimiter jsonMemory() {
        return jsonMemory;
    }

    InferResponseWriter writer() {
        return writer;
    }
}
