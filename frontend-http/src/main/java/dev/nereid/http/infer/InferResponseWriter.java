package dev.nereid.http.infer;

import dev.nereid.api.InferResponse;
import dev.nereid.api.NamedTensor;
import dev.nereid.http.body.ContentCoding;
import dev.nereid.http.body.ContentTypes;
import dev.nereid.http.body.QueuedBytes;
import dev.nereid.http.body.RequestBodyHeaders;
import dev.nereid.http.body.ResponseBody;
import dev.nereid.http.json.JsonChunks;
import dev.nereid.http.json.JsonWriter;
import dev.nereid.spi.Tensor;
import io.vertx.core.Context;
import io.vertx.core.MultiMap;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.http.HttpHeaders;
import io.vertx.core.http.HttpServerRequest;
import io.vertx.core.http.HttpServerResponse;
import java.util.List;

/**
 * Writes an inference response: JSON, then binary outputs. Confined to one event loop.
 *
 * <p>Large binary outputs leave from where they lie; the response is closed when the last byte is out. Small ones are
 * copied behind the JSON, which is cheaper than another write, and behind that of {@link ResponseHeaderCache} if nothing else
 * is new. A long text is written by {@link InferResponseJson} elsewhere, and sent here in pieces.
 */
final class InferResponseWriter {
    /** Up to so many bytes in all are copied. */
    private static final long MAX_COPIED_BYTES = 4096;

    /** Larger bodies are sent in several writes. */
    private static final long MAX_WRITE_BYTES = 1 << 30;

    private final Context context;
    private final long maxWriteBytes;
    private final JsonWriter json = new JsonWriter();
    private final ResponseHeaderCache headerCache = new ResponseHeaderCache();
    private final BinaryHeaderCache binaryHeaderCache = new BinaryHeaderCache();

    /** Creates the writer of one event loop. */
    InferResponseWriter(Context context) {
        this(context, MAX_WRITE_BYTES);
    }

    /** Creates a writer that sends no more than so many bytes in one write. */
    InferResponseWriter(Context context, long mostAtOnce) {
        this.context = context;
        this.maxWriteBytes = mostAtOnce;
    }

    /**
     * Answers a request, and takes the response over.
     *
     * @throws dev.nereid.api.InferenceException if an output cannot be written; nothing was, and the response is still
     *     the caller's
     * @throws InternalError if an output lies in shared memory that is not there any more; likewise
     */
    void write(HttpServerResponse http, InferResponse response, ResponseFormat form) {
        boolean isPlain = form.coding() == ContentCoding.IDENTITY;
        ResponseTemplate known = isPlain ? headerCache.find(response, form.outputs()) : null;
        if (known != null && http.headers().isEmpty()) {
            Buffer body = known.body(response);
            response.close();
            http.headers().setAll(known.headers());
            http.end(body);
            return;
        }
        json.clear();
        long binaryBytes = new InferResponseJson(json).write(response, form.outputs());
        int jsonSize = json.size();
        if (binaryBytes > 0 && binaryBytes <= MAX_COPIED_BYTES) {
            appendBinary(response.outputs(), form.outputs());
        }
        if (binaryBytes > MAX_COPIED_BYTES || !isPlain) {
            ResponseBody body = collect(
                    new ResponseBody(json, maxWriteBytes), response.outputs(), binaryBytes > MAX_COPIED_BYTES, form);
            putHeaders(http, binaryBytes, jsonSize);
            send(body, http, response::close, form.coding());
            return;
        }
        MultiMap lengths =
                binaryBytes > 0 && http.headers().isEmpty() ? binaryHeaderCache.find(jsonSize, json.size()) : null;
        if (lengths != null) {
            http.headers().setAll(lengths);
        } else {
            putHeaders(http, binaryBytes, jsonSize);
        }
        if (binaryBytes > 0) {
            headerCache.put(response, form.outputs(), json.array(), jsonSize);
        }
        Buffer body = json.take();
        response.close();
        http.end(body);
    }

    /**
     * A body written by a worker. Owned by the thread that has it.
     *
     * @param body the body
     * @param textBytes how many bytes of text it begins with
     * @param binaryBytes how many bytes of outputs follow
     */
    record Written(ResponseBody body, long textBytes, long binaryBytes) {}

    /** Puts outputs behind a text, on any thread; those in memory of the client are copied. Throws as {@link #write}. */
    static Written collect(InferResponse response, ResponseFormat form, JsonChunks text, long binaryBytes) {
        ResponseBody body = collect(
                new ResponseBody(text.take(), JsonChunks.CHUNK_SIZE), response.outputs(), binaryBytes > 0, form);
        return new Written(body, text.size(), binaryBytes);
    }

    /** Answers a request with a body that was written elsewhere, and takes body and response over. */
    void send(HttpServerRequest request, InferResponse response, ResponseFormat form, Written written) {
        HttpServerResponse http = request.response();
        putHeaders(http, written.binaryBytes(), written.textBytes());
        written.body().count(QueuedBytes.of(request.connection()));
        if (written.binaryBytes() > 0) {
            send(written.body(), http, response::close, form.coding());
        } else {
            response.close();
            send(written.body(), http, () -> {}, form.coding());
        }
    }

    private void send(ResponseBody body, HttpServerResponse http, Runnable sentAll, ContentCoding coding) {
        if (coding == ContentCoding.IDENTITY) {
            body.send(http, sentAll);
        } else {
            body.sendCompressed(http, sentAll, coding, context);
        }
    }

    private void putHeaders(HttpServerResponse http, long binaryBytes, long jsonSize) {
        http.putHeader(HttpHeaders.CONTENT_TYPE, binaryBytes > 0 ? ContentTypes.OCTET_STREAM : ContentTypes.JSON);
        if (binaryBytes > 0) {
            http.putHeader(RequestBodyHeaders.JSON_LENGTH, Long.toString(jsonSize));
        }
    }

    /** Adds the outputs that are not copied behind the text. */
    private static ResponseBody collect(
            ResponseBody body, List<NamedTensor> tensors, boolean withOutputs, ResponseFormat form) {
        try {
            for (int i = 0; withOutputs && i < tensors.size(); i++) {
                Tensor tensor = tensors.get(i).tensor();
                if (form.outputs().format(tensors.get(i).name()) != RequestedOutputs.Format.BINARY) {
                    continue;
                }
                if (form.isShared(tensor)) {
                    body.addCopy(tensor.data());
                } else {
                    body.add(tensor.data());
                }
            }
            return body;
        } catch (RuntimeException | Error e) {
            body.close();
            throw e;
        }
    }

    private void appendBinary(List<NamedTensor> tensors, RequestedOutputs outputs) {
        for (NamedTensor output : tensors) {
            if (outputs.format(output.name()) == RequestedOutputs.Format.BINARY) {
                json.raw(output.tensor().data());
            }
        }
    }
}
