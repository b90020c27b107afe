package dev.nereid.http.generate;

import dev.nereid.api.InferRequest;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InferenceServer;
import dev.nereid.api.ModelMetadata;
import dev.nereid.api.ModelRef;
import dev.nereid.api.Quoted;
import dev.nereid.http.body.BodyLimits;
import dev.nereid.http.body.ContentCoding;
import dev.nereid.http.body.ContentTypes;
import dev.nereid.http.body.DiscardedBody;
import dev.nereid.http.body.EventLoopExecutor;
import dev.nereid.http.body.JsonBodyReceiver;
import dev.nereid.http.body.RequestFailures;
import dev.nereid.http.body.RequestMemory;
import dev.nereid.http.json.JsonFields;
import dev.nereid.http.json.JsonMemoryLimiter;
import io.vertx.core.Context;
import io.vertx.core.http.HttpHeaders;
import io.vertx.core.http.HttpServerRequest;
import java.lang.foreign.MemorySegment;
import java.util.Optional;

/** Handles {@code generate} and {@code generate_stream} requests. Confined to one event loop. */
public final class GenerateHandler {
    private final InferenceServer server;
    private final BodyLimits limits;
    private final EventLoopExecutor loop;
    private final JsonMemoryLimiter jsonMemory;
    private final GenerateResponseWriter writer = new GenerateResponseWriter();

    /**
     * Creates the handler of one event loop, on that loop.
     *
     * @param server who infers
     * @param limits the limits
     * @param context the event loop
     * @param textMemory bounds the memory of long texts
     */
    public GenerateHandler(InferenceServer server, BodyLimits limits, Context context, JsonMemoryLimiter textMemory) {
        this.server = server;
        this.limits = limits;
        this.jsonMemory = textMemory;
        this.loop = new EventLoopExecutor(context);
    }

    /** Waits for the body, and answers with the model's only response. */
    public void generate(HttpServerRequest request, String name, String version) {
        receive(
                request,
                name,
                version,
                call -> new GenerateExchange(server, call, request, loop, writer, jsonMemory, limits.maxInlineBytes())
                        .start());
    }

    /** Waits for the body, and answers with the model's responses, each when it comes. */
    public void generateStream(HttpServerRequest request, String name, String version) {
        receive(
                request,
                name,
                version,
                call -> new GenerateStreamExchange(
                                server, call, request, loop, writer, jsonMemory, limits.maxInlineBytes())
                        .start());
    }

    /** Starts the exchange of a parsed request. */
    @FunctionalInterface
    private interface Exchange {
        void start(InferRequest call);
    }

    private void receive(HttpServerRequest request, String name, String version, Exchange exchange) {
        try {
            ModelRef model = ModelRef.parse(name, version);
            ModelMetadata description = server.models().metadata(model);
            checkEncoding(request);
            JsonBodyReceiver.receive(request, server, limits, loop, body -> {
                InferRequest call = read(model, description, body);
                return new JsonBodyReceiver.Prepared(() -> exchange.start(call), call.release());
            });
        } catch (InferenceException e) {
            DiscardedBody.refuse(
                    request, RequestFailures.refuse(server, "", Quoted.text(name), e), ContentTypes.JSON, limits);
        }
    }

    private InferRequest read(ModelRef model, ModelMetadata description, MemorySegment body) {
        RequestMemory memory = new RequestMemory(server.memory(), server.sharedMemory());
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
