package dev.nereid.http;

import dev.nereid.api.Cancellation;
import dev.nereid.api.InferCall;
import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelDescription;
import dev.nereid.api.ModelRef;
import dev.nereid.spi.ParameterValue;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.http.HttpHeaders;
import io.vertx.core.http.HttpServerRequest;
import io.vertx.core.http.HttpServerResponse;
import java.util.Map;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One inference, from its headers to the call. Confined to its event loop.
 *
 * <p>The steps: the body arrives; it is read and the call goes to the server, which owns all memory from then on; the
 * answer is for the {@link InferAnswer}. The client may go away in any of them: before the call the body is given back,
 * after it the call is withdrawn.
 */
final class InferExchange {
    private static final Logger log = LoggerFactory.getLogger(InferExchange.class);
    private static final Cancellation NOTHING_TO_CANCEL = () -> {};

    private final InferHandler handler;
    private final HttpServerRequest request;
    private final HttpServerResponse http;
    private final ModelRef model;
    private final ModelDescription description;
    private final InferHead head;
    private final RequestBody body;
    private Cancellation cancellation = NOTHING_TO_CANCEL;
    /** Whether the body is no longer of interest. */
    private boolean refused;

    InferExchange(
            InferHandler handler,
            HttpServerRequest request,
            ModelRef model,
            ModelDescription description,
            InferHead head) {
        this.handler = handler;
        this.request = request;
        this.http = request.response();
        this.model = model;
        this.description = description;
        this.head = head;
        this.body = new RequestBody(handler.server().memory(), head, handler.options());
    }

    /** Waits for the body. */
    void start() {
        http.closeHandler(closed -> clientLeft());
        request.handler(this::receive);
        request.endHandler(end -> submit());
    }

    private void receive(Buffer chunk) {
        if (refused) {
            return;
        }
        try {
            if (!body.append(chunk)) {
                request.pause();
                handler.context().runOnContext(now -> proceed());
            }
        } catch (InferenceException e) {
            refuseUnread(e);
        }
    }

    /** Takes more of a chunk that is much larger than it looks, while others have their turns. */
    private void proceed() {
        if (refused) {
            return;
        }
        try {
            if (body.proceed()) {
                request.resume();
            } else {
                handler.context().runOnContext(now -> proceed());
            }
        } catch (InferenceException e) {
            request.resume();
            refuseUnread(e);
        }
    }

    private void submit() {
        if (refused) {
            return;
        }
        CallMemory memory =
                new CallMemory(handler.server().memory(), handler.server().sharedMemory());
        InferRequest read;
        InferCall call;
        try {
            body.finish();
            read = read(memory);
            call = call(read, memory);
        } catch (InferenceException e) {
            memory.run();
            refuse(e);
            return;
        } catch (RuntimeException e) {
            memory.run();
            body.close();
            log.atError().addKeyValue("model", model).setCause(e).log("request not read");
            HttpErrors.sendInternal(http);
            return;
        }
        ContentCoding coding = ContentCoding.forResponse(request.getHeader(HttpHeaders.ACCEPT_ENCODING));
        InferAnswer answer = new InferAnswer(handler, http, model, new AnswerForm(read.outputs(), coding, memory));
        cancellation = handler.server().infer(call, answer);
    }

    private InferRequest read(CallMemory memory) {
        long jsonLength = head.jsonLength(body.size());
        InferRequest read;
        boolean bodyNeeded;
        if (jsonLength == 0) {
            read = new RawRequestReader(description).read(body.bytes(), memory);
            bodyNeeded = true;
        } else {
            InferRequestReader reader = new InferRequestReader(
                    model.name(),
                    body.bytes(),
                    jsonLength,
                    memory,
                    handler.options().maxJsonBytes());
            read = reader.read();
            bodyNeeded = reader.usesBody();
        }
        if (bodyNeeded) {
            body.take().ifPresent(memory::adopt);
        } else {
            body.close();
        }
        return read;
    }

    private InferCall call(InferRequest read, CallMemory memory) {
        Map<String, ParameterValue> parameters = handler.options()
                .forwardedHeaders()
                .map(pattern -> ForwardedHeaders.add(read.parameters(), request.headers(), pattern))
                .orElse(read.parameters());
        return new InferCall(
                model, read.id(), read.inputs(), read.outputs().wanted(), parameters, read.options(), memory);
    }

    /** Answers what is wrong with a body of which more may come. */
    private void refuseUnread(InferenceException error) {
        UnwantedBody.announceClose(request);
        refuse(error);
        UnwantedBody.discard(request);
    }

    private void refuse(InferenceException error) {
        refused = true;
        body.close();
        HttpErrors.send(http, error, head.coding() == ContentCoding.IDENTITY ? HttpErrors.JSON : HttpErrors.TEXT);
    }

    private void clientLeft() {
        refused = true;
        body.close();
        cancellation.cancel();
    }
}
