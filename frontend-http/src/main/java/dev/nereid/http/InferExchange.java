package dev.nereid.http;

import dev.nereid.api.Cancellation;
import dev.nereid.api.InferCall;
import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelDescription;
import dev.nereid.api.ModelRef;
import dev.nereid.api.RequestedOutput;
import dev.nereid.api.ResponseObserver;
import dev.nereid.spi.ErrorCode;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.http.HttpServerRequest;
import io.vertx.core.http.HttpServerResponse;
import java.util.concurrent.RejectedExecutionException;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One inference, from its headers to its answer. Confined to its event loop, but for the observer's methods, which hand
 * over to it.
 *
 * <p>The steps: the body arrives; it is read and the call goes to the server, which owns all memory from then on; the
 * answer comes back on whichever thread and is written on the event loop. The client may go away in any of them: before
 * the call the body is given back, after it the call is withdrawn, and its answer closed unseen when it comes.
 */
final class InferExchange implements ResponseObserver {
    private static final Logger log = LoggerFactory.getLogger(InferExchange.class);
    private static final Cancellation NOTHING_TO_CANCEL = () -> {};
    private static final String NO_MEMORY =
            "not enough memory to write the response as JSON; ask for its outputs as binary data";

    private final InferHandler handler;
    private final HttpServerRequest request;
    private final HttpServerResponse http;
    private final ModelRef model;
    private final ModelDescription description;
    private final InferHead head;
    private final RequestBody body;
    private Cancellation cancellation = NOTHING_TO_CANCEL;
    private RequestedOutputs outputs = RequestedOutputs.all(false);
    /** Whether the body is no longer of interest. */
    private boolean refused;
    /** Responses that came although more than one is wrong. Touched by one thread at a time, as the observer is. */
    private int surplus;

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
        try {
            if (!refused) {
                body.append(chunk);
            }
        } catch (InferenceException e) {
            refuse(e);
            InferHandler.discard(request);
        }
    }

    private void submit() {
        if (refused) {
            return;
        }
        CallMemory memory = new CallMemory(handler.server().memory());
        InferCall call;
        try {
            call = read(memory);
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
        cancellation = handler.server().infer(call, this);
    }

    private InferCall read(CallMemory memory) {
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
        outputs = read.outputs();
        return new InferCall(
                model,
                read.id(),
                read.inputs(),
                outputs.names().stream().map(RequestedOutput::of).toList(),
                read.parameters(),
                read.options(),
                memory);
    }

    private void refuse(InferenceException error) {
        refused = true;
        body.close();
        HttpErrors.send(http, error, HttpErrors.JSON);
    }

    private void clientLeft() {
        refused = true;
        body.close();
        cancellation.cancel();
    }

    @Override
    public void onResponse(InferResponse response) {
        if (!response.isLast() || surplus > 0) {
            surplus++;
            response.close();
            if (response.isLast()) {
                fail(JsonFields.internal("expected a single response, got " + surplus));
            }
            return;
        }
        onEventLoop(response, null);
    }

    @Override
    public void onEnd() {
        fail(JsonFields.internal("expected a single response, got " + surplus));
    }

    @Override
    public void onError(InferenceException error) {
        fail(error);
    }

    private void fail(InferenceException error) {
        onEventLoop(null, error);
    }

    private void onEventLoop(@Nullable InferResponse response, @Nullable InferenceException error) {
        if (handler.isOnEventLoop()) {
            answer(response, error);
        } else {
            try {
                handler.context().runOnContext(now -> answer(response, error));
            } catch (RejectedExecutionException e) { // the event loop has stopped, and the connection with it
                if (response != null) {
                    response.close();
                }
            }
        }
    }

    private void answer(@Nullable InferResponse response, @Nullable InferenceException error) {
        if (response != null) {
            write(response);
        } else if (error != null) {
            HttpErrors.send(http, error, HttpErrors.JSON);
        }
    }

    private void write(InferResponse response) {
        if (http.closed()) {
            response.close();
            return;
        }
        try {
            handler.writer().write(http, response, outputs);
        } catch (InferenceException e) {
            response.close();
            HttpErrors.send(http, e, HttpErrors.TEXT);
        } catch (OutOfMemoryError e) { // a text that the heap cannot hold; nothing else was under way
            response.close();
            HttpErrors.send(http, new InferenceException(ErrorCode.UNAVAILABLE, NO_MEMORY), HttpErrors.JSON);
        } catch (RuntimeException e) {
            response.close();
            log.atError().addKeyValue("model", model).setCause(e).log("response not written");
            HttpErrors.sendInternal(http);
        }
    }
}
