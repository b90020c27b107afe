package dev.nereid.http;

import dev.nereid.api.Cancellation;
import dev.nereid.api.InferCall;
import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelDescription;
import dev.nereid.api.ModelRef;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ParameterValue;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.http.HttpHeaders;
import io.vertx.core.http.HttpServerRequest;
import io.vertx.core.http.HttpServerResponse;
import java.util.Map;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One inference, from its headers to the call. Confined to its event loop, but for the reading of a long text, which a
 * worker does while the event loop waits for it with this request, and goes on with others.
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
    /** The client's name for the request, once it was read. */
    private String id = "";

    /** Whether the body is no longer of interest. */
    private boolean refused;
    /** Whether a worker reads the body, which nobody may close meanwhile. */
    private boolean isReadElsewhere;

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
        this.body = new RequestBody(handler.server().memory(), head, handler.limits());
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
                handler.loop().runAfterOthers(this::proceed);
            }
        } catch (InferenceException e) {
            refuseUnread(e);
        } catch (RuntimeException | Error e) {
            failUnread(e);
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
                handler.loop().runAfterOthers(this::proceed);
            }
        } catch (InferenceException e) {
            request.resume();
            refuseUnread(e);
        } catch (RuntimeException | Error e) {
            request.resume();
            failUnread(e);
        }
    }

    private void submit() {
        if (refused) {
            return;
        }
        boolean isLong;
        try {
            body.finish();
            isLong = bytesToRead() > handler.limits().maxInlineBytes();
        } catch (InferenceException e) {
            refuse(e);
            return;
        } catch (RuntimeException | Error e) {
            fail(e);
            return;
        }
        CallMemory memory =
                new CallMemory(handler.server().memory(), handler.server().sharedMemory());
        if (!isLong) {
            prepare(memory).run();
        } else {
            isReadElsewhere = true;
            if (!handler.loop().runElsewhere(() -> prepareElsewhere(memory))) {
                body.close();
            }
        }
    }

    /** How much of the body is looked at: its JSON, or the string that it is, which is copied. */
    private long bytesToRead() {
        long jsonLength = head.jsonLength(body.size());
        boolean isString = jsonLength == 0
                && !description.inputs().isEmpty()
                && description.inputs().getFirst().type() == DataType.BYTES;
        return isString ? body.size() : jsonLength;
    }

    /** Reads a long text, on a worker. */
    private void prepareElsewhere(CallMemory memory) {
        Runnable next = prepare(memory);
        if (!handler.loop().run(() -> resume(memory, next))) {
            memory.run();
            body.close();
        }
    }

    private void resume(CallMemory memory, Runnable next) {
        isReadElsewhere = false;
        if (refused) {
            memory.run();
            body.close();
        } else {
            next.run();
        }
    }

    /**
     * Reads the body.
     *
     * @return what is to be done next, by the event loop
     */
    private Runnable prepare(CallMemory memory) {
        try {
            InferRequest read = read(memory);
            InferCall call = call(read, memory);
            return () -> infer(call, read.outputs(), memory);
        } catch (InferenceException e) {
            memory.run();
            return () -> refuse(e);
        } catch (RuntimeException | Error e) {
            memory.run();
            return () -> fail(e);
        }
    }

    private void infer(InferCall call, RequestedOutputs outputs, CallMemory memory) {
        ContentCoding coding = ContentCoding.forResponse(request.getHeader(HttpHeaders.ACCEPT_ENCODING));
        InferAnswer answer =
                new InferAnswer(handler, request, model, call.id(), new AnswerForm(outputs, coding, memory));
        try {
            cancellation = handler.server().infer(call, answer);
        } catch (RuntimeException | Error e) { // the memory is the server's
            memory.answered();
            fail(e);
        }
    }

    private InferRequest read(CallMemory memory) {
        long jsonLength = head.jsonLength(body.size());
        if (jsonLength == 0) {
            return onBody(new RawRequestReader(description).read(body.bytes(), memory), memory);
        }
        // Known texts are the event loop's alone.
        InferRequest known = isReadElsewhere ? null : handler.texts().read(model.name(), body.bytes(), jsonLength);
        return known != null ? onBody(known, memory) : readAnew(jsonLength, memory);
    }

    private InferRequest readAnew(long jsonLength, CallMemory memory) {
        InferRequestReader reader = new InferRequestReader(
                model.name(), body.bytes(), jsonLength, memory, handler.limits().maxJsonBytes());
        InferRequest read;
        try {
            read = reader.read();
        } finally {
            id = reader.id();
        }
        if (reader.ignoredData() && description.maxBatchSize() == 0) {
            throw JsonTensorReader.tooManyElements();
        }
        if (!isReadElsewhere && reader.usesBodyAlone()) {
            handler.texts().keep(model.name(), body.bytes(), jsonLength, read);
        }
        if (reader.usesBody()) {
            return onBody(read, memory);
        }
        body.close();
        return read;
    }

    /** Has the memory of the call own the body, which inputs of the request view. */
    private InferRequest onBody(InferRequest read, CallMemory memory) {
        body.take().ifPresent(memory::adopt);
        return read;
    }

    private InferCall call(InferRequest read, CallMemory memory) {
        Map<String, ParameterValue> parameters = handler.forwardedHeaders()
                .map(pattern -> ForwardedHeaders.add(read.parameters(), request, pattern))
                .orElse(read.parameters());
        return new InferCall(
                model, read.id(), read.inputs(), read.outputs().wanted(), parameters, read.options(), memory);
    }

    /** Answers what is wrong with a body of which more may come. */
    private void refuseUnread(InferenceException error) {
        UnwantedBody.announceClose(request, handler.limits());
        refuse(error);
        UnwantedBody.discard(request, handler.limits());
    }

    private void failUnread(Throwable error) {
        UnwantedBody.announceClose(request, handler.limits());
        fail(error);
        UnwantedBody.discard(request, handler.limits());
    }

    /** Answers that the server failed, which must not leave the request without an answer. */
    private void fail(Throwable error) {
        refused = true;
        body.close();
        log.atError().addKeyValue("model", model).setCause(error).log("request not served");
        RequestFailures.logInternal(id, model);
        HttpErrors.sendInternal(request);
    }

    private void refuse(InferenceException error) {
        refused = true;
        body.close();
        InferenceException told = RequestFailures.refuse(handler.server(), id, model, error);
        HttpErrors.send(http, told, head.coding() == ContentCoding.IDENTITY ? ContentTypes.JSON : ContentTypes.TEXT);
    }

    private void clientLeft() {
        refused = true;
        if (!isReadElsewhere) {
            body.close();
        }
        cancellation.cancel();
    }
}
