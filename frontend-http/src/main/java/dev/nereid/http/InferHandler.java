package dev.nereid.http;

import dev.nereid.api.InferenceException;
import dev.nereid.api.InferenceServer;
import dev.nereid.api.ModelDescription;
import dev.nereid.api.ModelRef;
import dev.nereid.api.Quoted;
import dev.nereid.spi.ErrorCode;
import io.vertx.core.Context;
import io.vertx.core.http.HttpServerRequest;
import java.util.Optional;
import java.util.regex.Pattern;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Takes requests for inferences in. Confined to one event loop. */
final class InferHandler {
    private static final Logger log = LoggerFactory.getLogger(InferHandler.class);
    private final InferenceServer server;
    private final BodyLimits limits;
    private final Optional<Pattern> forwardedHeaders;
    private final Context context;
    private final EventLoop loop;
    private final Thread eventLoop = Thread.currentThread();
    private final InferResponseWriter writer;
    private final TextMemory textMemory;
    private final KnownTexts texts = new KnownTexts();

    /**
     * Creates the handler of one event loop, on that loop.
     *
     * @param server who infers
     * @param limits the limits of bodies
     * @param forwardedHeaders found in the names of those headers that become parameters
     * @param context the event loop
     * @param textMemory bounds the memory of long texts
     */
    InferHandler(
            InferenceServer server,
            BodyLimits limits,
            Optional<Pattern> forwardedHeaders,
            Context context,
            TextMemory textMemory) {
        this.server = server;
        this.limits = limits;
        this.forwardedHeaders = forwardedHeaders;
        this.context = context;
        this.textMemory = textMemory;
        this.loop = new EventLoop(context);
        this.writer = new InferResponseWriter(context);
    }

    /** Checks what can be checked before the body is there, and then waits for it. */
    void handle(HttpServerRequest request, String name, String version) {
        try {
            ModelRef model = ModelRef.parse(name, version);
            ModelDescription description = server.models().describe(model);
            if (description.decoupled()) {
                throw new InferenceException(
                        ErrorCode.UNSUPPORTED,
                        "HTTP end point doesn't support models with decoupled transaction policy");
            }
            InferHead head = InferHead.of(request, limits);
            UnwantedBody.invite(request);
            new InferExchange(this, request, model, description, head).start();
        } catch (InferenceException e) {
            UnwantedBody.refuse(
                    request, RequestFailures.refuse(server, "", Quoted.text(name), e), ContentTypes.TEXT, limits);
        } catch (RuntimeException | Error e) {
            log.atError().addKeyValue("model", Quoted.text(name)).setCause(e).log("inference not begun");
            HttpErrors.sendInternal(request);
            UnwantedBody.discard(request, limits);
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

    Context context() {
        return context;
    }

    EventLoop loop() {
        return loop;
    }

    boolean isOnEventLoop() {
        return eventLoop.equals(Thread.currentThread());
    }

    KnownTexts texts() {
        return texts;
    }

    TextMemory textMemory() {
        return textMemory;
    }

    InferResponseWriter writer() {
        return writer;
    }
}
