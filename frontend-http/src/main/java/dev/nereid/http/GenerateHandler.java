package dev.nereid.http;

import dev.nereid.api.InferCall;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InferenceServer;
import dev.nereid.api.ModelDescription;
import dev.nereid.api.ModelRef;
import dev.nereid.api.Quoted;
import io.vertx.core.Context;
import io.vertx.core.http.HttpHeaders;
import io.vertx.core.http.HttpServerRequest;
import java.lang.foreign.MemorySegment;
import java.util.Optional;

/** Takes requests to generate in. Confined to one event loop. */
final class GenerateHandler {
    private final InferenceServer server;
    private final BodyLimits limits;
    private final EventLoop loop;
    private final TextMemory textMemory;
    private final GenerateResponseWriter writer = new GenerateResponseWriter();

    /**
     * Creates the handler of one event loop, on that loop.
     *
     * @param server who infers
     * @param limits the limits
     * @param context the event loop
     * @param textMemory bounds the memory of long texts
     */
    GenerateHandler(InferenceServer server, BodyLimits limits, Context context, TextMemory textMemory) {
        this.server = server;
        this.limits = limits;
        this.textMemory = textMemory;
        this.loop = new EventLoop(context);
    }

    /** Waits for the body, and answers with the model's only response. */
    void generate(HttpServerRequest request, String name, String version) {
        receive(
                request,
                name,
                version,
                call -> new GenerateExchange(server, call, request, loop, writer, textMemory, limits.maxInlineBytes())
                        .start());
    }

    /** Waits for the body, and answers with the model's responses, each when it comes. */
    void generateStream(HttpServerRequest request, String name, String version) {
        receive(
                request,
                name,
                version,
                call -> new StreamExchange(server, call, request, loop, writer, textMemory, limits.maxInlineBytes())
                        .start());
    }

    /** Takes over a call that was read. */
    @FunctionalInterface
    private interface Exchange {
        void start(InferCall call);
    }

    private void receive(HttpServerRequest request, String name, String version, Exchange exchange) {
        try {
            ModelRef model = ModelRef.parse(name, version);
            ModelDescription description = server.models().describe(model);
            checkEncoding(request);
            JsonBody.receive(request, server, limits, loop, body -> {
                InferCall call = read(model, description, body);
                return new JsonBody.Prepared(() -> exchange.start(call), call.release());
            });
        } catch (InferenceException e) {
            UnwantedBody.refuse(
                    request, RequestFailures.refuse(server, "", Quoted.text(name), e), ContentTypes.JSON, limits);
        }
    }

    private InferCall read(ModelRef model, ModelDescription description, MemorySegment body) {
        CallMemory memory = new CallMemory(server.memory(), server.sharedMemory());
        try {
            return new GenerateRequestReader(description, body, memory, limits.maxJsonBytes()).read(model);
        } catch (RuntimeException | Error e) {
            memory.run();
            throw e;
        }
    }

    private static void checkEncoding(HttpServerRequest request) {
        Optional<ContentCoding> coding = ContentCoding.ofBody(request.getHeader(HttpHeaders.CONTENT_ENCODING));
        if (!coding.equals(Optional.of(ContentCoding.IDENTITY))) {
            throw JsonFields.invalid("Unsupported content-encoding, only 'identity' is supported.");
        }
    }
}
