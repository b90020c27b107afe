package dev.nereid.http.generate;

import dev.nereid.api.InferRequest;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InferenceServer;
import dev.nereid.api.ModelMetadata;
import dev.nereid.api.ModelRef;
import dev.nereid.api.Quoted;
import dev.nereid.api.frontend.ForwardedHeaders;
import dev.nereid.http.body.BodyLimits;
import dev.nereid.http.body.ContentCoding;
import dev.nereid.http.body.ContentTypes;
import dev.nereid.http.body.DiscardedBody;
import dev.nereid.http.body.EventLoopExecutor;
import dev.nereid.http.body.ForwardedHeaderReader;
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
import java.util.regex.Pattern;

/** Handles {@code generate} and {@code generate_stream} requests. Confined to one event loop. */
public final class GenerateHandler {
    private final InferenceServer server;
    private final BodyLimits limits;
    private final Optional<Pattern> forwardedHeaders;
    private final EventLoopExecutor loop;
    private final JsonMemoryLimiter jsonMemory;
    private final GenerateResponseWriter writer = new GenerateResponseWriter();

    /** Creates the handler of one event loop, on that loop. {@code jsonMemory} limits the memory of long texts. */
    public GenerateHandler(
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
    }

    /** Receives the body, and sends the model's only response. */
    public void generate(HttpServerRequest request, String name, String version) {
        receive(
                request,
                name,
                version,
                inferRequest -> new GenerateExchange(
                                server, inferRequest, request, loop, writer, jsonMemory, limits.maxInlineBytes())
                        .start());
    }

    /** Receives the body, and sends each of the model's responses as it comes. */
    public void generateStream(HttpServerRequest request, String name, String version) {
        receive(
                request,
                name,
                version,
                inferRequest -> new GenerateStreamExchange(
                                server, inferRequest, request, loop, writer, jsonMemory, limits.maxInlineBytes())
                        .start());
    }

    /** Starts the exchange of a parsed request. */
    @FunctionalInterface
    private interface Exchange {
        void start(InferRequest inferRequest);
    }

    private void receive(HttpServerRequest request, String name, String version, Exchange exchange) {
        try {
            ModelRef model = ModelRef.parse(name, version);
            ModelMetadata metadata = server.models().metadata(model);
            checkEncoding(request);
            ForwardedHeaders headers = ForwardedHeaderReader.read(request, forwardedHeaders);
            JsonBodyReceiver.receive(request, server, limits, loop, body -> {
                InferRequest inferRequest = read(model, metadata, body, headers);
                return new JsonBodyReceiver.Prepared(() -> exchange.start(inferRequest), inferRequest.release());
            });
        } catch (InferenceException e) {
            DiscardedBody.refuse(
                    request, RequestFailures.refuse(server, "", Quoted.text(name), e), ContentTypes.JSON, limits);
        }
    }

    private InferRequest read(ModelRef model, ModelMetadata metadata, MemorySegment body, ForwardedHeaders headers) {
        RequestMemory memory = new RequestMemory(server.memory(), server.sharedMemory());
        InferRequest read = null;
        try {
            read = new GenerateRequestReader(metadata, body, memory, limits.maxJsonBytes()).read(model, headers);
            return read;
        } finally {
            if (read == null) {
                memory.run();
            }
        }
    }

    private static void checkEncoding(HttpServerRequest request) {
        Optional<ContentCoding> coding = ContentCoding.ofBody(request.getHeader(HttpHeaders.CONTENT_ENCODING));
        if (!coding.equals(Optional.of(ContentCoding.IDENTITY))) {
            throw JsonFields.invalid("Unsupported content-encoding, only 'identity' is supported.");
        }
    }
}
