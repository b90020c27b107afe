package dev.nereid.http.infer;

import dev.nereid.api.Cancellation;
import dev.nereid.api.InferRequest;
import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelMetadata;
import dev.nereid.api.ModelRef;
import dev.nereid.api.frontend.ForwardedHeaders;
import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.http.body.ContentCoding;
import dev.nereid.http.body.ContentTypes;
import dev.nereid.http.body.DiscardedBody;
import dev.nereid.http.body.ForwardedHeaderReader;
import dev.nereid.http.body.HttpErrors;
import dev.nereid.http.body.RequestBody;
import dev.nereid.http.body.RequestBodyHeaders;
import dev.nereid.http.body.RequestFailures;
import dev.nereid.http.body.RequestMemory;
import dev.nereid.http.json.JsonTensorReader;
import dev.nereid.spi.DataType;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.http.HttpHeaders;
import io.vertx.core.http.HttpServerRequest;
import io.vertx.core.http.HttpServerResponse;
import java.util.Map;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One inference request over HTTP, from its headers to its submission. Confined to its event loop, except that a worker
 * reads a long text.
 *
 * <p>The body is received, then read, then the request is submitted to the server, which owns all memory from then on;
 * {@link InferResponseObserver} writes the response. The client may disconnect at any time: before the submission the
 * body is released, after it the request is cancelled.
 */
final class InferExchange {
    private static final Logger LOG = LoggerFactory.getLogger(InferExchange.class);

    private final InferHandler handler;
    private final HttpServerRequest request;
    private final HttpServerResponse http;
    private final ModelRef model;
    private final ModelMetadata metadata;
    private final RequestBodyHeaders headers;
    private final RequestBody body;
    private Cancellation cancellation = Cancellation.NONE;
    /** The headers for the backend. Read on the event loop, before a worker reads the body. */
    private ForwardedHeaders forwarded = ForwardedHeaders.NONE;
    /** The request's id, once it was read. */
    private String id = "";

    /** {@code true} if the body is not read any more. */
    private boolean refused;
    /** {@code true} while a worker reads the body, which must not be closed meanwhile. */
    private boolean isReadOnWorker;

    InferExchange(
            InferHandler handler,
            HttpServerRequest request,
            ModelRef model,
            ModelMetadata metadata,
            RequestBodyHeaders headers) {
        this.handler = handler;
        this.request = request;
        this.http = request.response();
        this.model = model;
        this.metadata = metadata;
        this.headers = headers;
        this.body = new RequestBody(handler.server().memory(), headers, handler.limits());
    }

    void start() {
        http.closeHandler(closed -> onClientClosed());
        request.handler(this::receive);
        request.endHandler(this::submit);
    }

    private void receive(Buffer chunk) {
        if (refused) {
            return;
        }
        try {
            if (!body.append(chunk)) {
                request.pause();
                handler.loop().executeAfterIo(this::inflateMore);
            }
        } catch (InferenceException e) {
            refuseUnread(e);
        } catch (RuntimeException | Error e) {
            failUnread(e);
        }
    }

    /** Inflates more of a highly compressed chunk, after other events were served. */
    private void inflateMore() {
        if (refused) {
            return;
        }
        try {
            if (body.inflateMore()) {
                request.resume();
            } else {
                handler.loop().executeAfterIo(this::inflateMore);
            }
        } catch (InferenceException e) {
            request.resume();
            refuseUnread(e);
        } catch (RuntimeException | Error e) {
            request.resume();
            failUnread(e);
        }
    }

    private void submit(Void end) {
        if (refused) {
            return;
        }
        boolean isLong;
        try {
            body.finish();
            forwarded = ForwardedHeaderReader.read(request, handler.forwardedHeaders());
            isLong = bytesToRead() > handler.limits().maxInlineBytes();
        } catch (InferenceException e) {
            refuse(e);
            return;
        } catch (RuntimeException | Error e) {
            fail(e);
            return;
        }
        RequestMemory memory =
                new RequestMemory(handler.server().memory(), handler.server().sharedMemory());
        if (!isLong) {
            infer(prepare(memory), memory);
        } else {
            isReadOnWorker = true;
            if (!handler.loop().executeOnWorker(() -> prepareOnWorker(memory))) {
                body.close();
            }
        }
    }

    /** Returns the number of bytes to read. They are the bytes of the JSON, or of a raw string, which is copied. */
    private long bytesToRead() {
        long jsonLength = headers.jsonLength(body.size());
        boolean isString = jsonLength == 0
                && !metadata.inputs().isEmpty()
                && metadata.inputs().getFirst().type() == DataType.BYTES;
        return isString ? body.size() : jsonLength;
    }

    /** Reads a long text, on a worker. */
    private void prepareOnWorker(RequestMemory memory) {
        Prepared prepared = prepare(memory);
        if (!handler.loop().execute(() -> resume(prepared, memory))) {
            memory.run();
            body.close();
        }
    }

    private void resume(Prepared prepared, RequestMemory memory) {
        isReadOnWorker = false;
        if (refused) {
            memory.run();
            body.close();
        } else {
            infer(prepared, memory);
        }
    }

    /** A body that was read, or not. */
    private sealed interface Prepared {}

    private record Read(InferRequest request, InferRequestBody body) implements Prepared {}

    private record Unreadable(Throwable error) implements Prepared {}

    private Prepared prepare(RequestMemory memory) {
        try {
            InferRequestBody read = read(memory);
            return new Read(toInferRequest(read, memory), read);
        } catch (RuntimeException | Error e) {
            memory.run();
            return new Unreadable(e);
        }
    }

    /** Submits the request, or responds with its error. */
    private void infer(Prepared prepared, RequestMemory memory) {
        switch (prepared) {
            case Unreadable(InferenceException error) -> refuse(error);
            case Unreadable(Throwable error) -> fail(error);
            case Read(InferRequest read, InferRequestBody content) -> {
                ContentCoding coding = ContentCoding.forResponse(request.getHeader(HttpHeaders.ACCEPT_ENCODING));
                InferResponseObserver observer = new InferResponseObserver(
                        handler,
                        request,
                        model,
                        read.id(),
                        new ResponseFormat(content.outputs(), coding, memory, content.repeated()));
                try {
                    cancellation = handler.server().infer(read, observer);
                } catch (RuntimeException | Error e) { // the server owns the memory
                    memory.releaseRegistrations();
                    fail(e);
                }
            }
        }
    }

    private InferRequestBody read(RequestMemory memory) {
        long jsonLength = headers.jsonLength(body.size());
        if (jsonLength == 0) {
            return adoptBody(new RawRequestReader(metadata).read(body.bytes(), memory), memory);
        }
        // The cache is confined to the event loop.
        InferRequestBody cached =
                isReadOnWorker ? null : handler.requestCache().get(model.name(), body.bytes(), jsonLength);
        return cached != null ? adoptBody(cached, memory) : parse(jsonLength, memory);
    }

    private InferRequestBody parse(long jsonLength, RequestMemory memory) {
        InferRequestReader reader = new InferRequestReader(
                model.name(), body.bytes(), jsonLength, memory, handler.limits().maxJsonBytes());
        InferRequestBody read;
        try {
            read = reader.read();
        } finally {
            id = reader.id();
        }
        if (reader.ignoredData() && metadata.maxBatchSize() == 0) {
            throw JsonTensorReader.tooManyElements();
        }
        if (!isReadOnWorker && reader.usesOnlyBody()) {
            handler.requestCache().put(model.name(), body.bytes(), jsonLength, read);
        }
        if (reader.usesBody()) {
            return adoptBody(read, memory);
        }
        body.close();
        return read;
    }

    /** Transfers the body, which inputs view, to the request's memory. */
    private InferRequestBody adoptBody(InferRequestBody read, RequestMemory memory) {
        body.take().ifPresent(memory::adopt);
        return read;
    }

    private InferRequest toInferRequest(InferRequestBody read, RequestMemory memory) {
        Map<String, ParameterValue> parameters = forwarded.addTo(read.parameters());
        return new InferRequest(
                model, read.id(), read.inputs(), read.outputs().requested(), parameters, read.options(), memory);
    }

    /** Refuses a request before its body has arrived completely. */
    private void refuseUnread(InferenceException error) {
        DiscardedBody.announceClose(request, handler.limits());
        refuse(error);
        DiscardedBody.discard(request, handler.limits());
    }

    private void failUnread(Throwable error) {
        DiscardedBody.announceClose(request, handler.limits());
        fail(error);
        DiscardedBody.discard(request, handler.limits());
    }

    /** Responds with an internal error, or closes the connection if that fails. */
    private void fail(Throwable error) {
        refused = true;
        body.close();
        LOG.atError().addKeyValue("model", model).setCause(error).log("request not served");
        RequestFailures.logInternal(id, model);
        HttpErrors.sendInternal(request);
    }

    private void refuse(InferenceException error) {
        refused = true;
        body.close();
        InferenceException refusal = RequestFailures.refuse(handler.server(), id, model, error);
        HttpErrors.send(
                http, refusal, headers.coding() == ContentCoding.IDENTITY ? ContentTypes.JSON : ContentTypes.TEXT);
    }

    private void onClientClosed() {
        refused = true;
        if (!isReadOnWorker) {
            body.close();
        }
        cancellation.cancel();
    }
}
