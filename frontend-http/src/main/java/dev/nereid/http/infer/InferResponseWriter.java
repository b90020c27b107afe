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
 * <p>Large binary outputs are sent without a copy; the response is closed after the last byte. Small ones are copied
 * behind the JSON, which is cheaper than another write, and behind that of a {@link RepeatedResponse} if nothing else
 * differs. A worker writes a long text by {@link InferResponseJson}, and this class sends it in chunks.
 */
final class InferResponseWriter {
    /** The maximum size of all binary outputs that are copied. */
    private static final long MAX_COPIED_BYTES = 4096;

    /** Larger bodies are sent in several writes. */
    private static final long MAX_WRITE_BYTES = 1 << 30;

    private final Context context;
    private final long maxWriteBytes;
    private final JsonWriter json = new JsonWriter();
    private final ResponseHeaderCache headerCache = new ResponseHeaderCache();

    InferResponseWriter(Context context) {
        this(context, MAX_WRITE_BYTES);
    }

    InferResponseWriter(Context context, long maxWriteBytes) {
        this.context = context;
        this.maxWriteBytes = maxWriteBytes;
    }

    /**
     * Sends a response, and takes ownership of it.
     *
     * @throws dev.nereid.api.InferenceException if an output cannot be written; nothing was sent, and the caller still
     *     owns the response
     */
    void write(HttpServerResponse http, InferResponse response, ResponseFormat format) {
        boolean isPlain = format.coding() == ContentCoding.IDENTITY;
        RepeatedResponse repeated = isPlain ? format.repeated() : null;
        ResponseTemplate template = repeated == null ? null : repeated.find(response);
        if (template != null) {
            Buffer body = template.body(response);
            putBinaryHeaders(http, template.jsonSize(), body.length());
            response.close();
            http.end(body);
            return;
        }
        json.clear();
        long binaryBytes = new InferResponseJson(json).write(response, format.outputs());
        int jsonSize = json.size();
        if (binaryBytes > 0 && binaryBytes <= MAX_COPIED_BYTES) {
            appendBinary(response.outputs(), format.outputs());
        }
        if (binaryBytes > MAX_COPIED_BYTES || !isPlain) {
            ResponseBody body = collect(
                    new ResponseBody(json, maxWriteBytes), response.outputs(), binaryBytes > MAX_COPIED_BYTES, format);
            putHeaders(http, binaryBytes, jsonSize);
            send(body, http, response::close, format.coding());
            return;
        }
        if (binaryBytes > 0) {
            putBinaryHeaders(http, jsonSize, json.size());
            if (repeated != null) {
                repeated.put(response, format.outputs(), json.array(), jsonSize, json.size());
            }
        } else {
            putHeaders(http, 0, jsonSize);
        }
        Buffer body = json.take();
        response.close();
        http.end(body);
    }

    /** A worker's body, with the sizes of its text and of the outputs behind it. Owned by the thread that has it. */
    record Written(ResponseBody body, long textBytes, long binaryBytes) {}

    /** Appends outputs to a text, on any thread. Throws as {@link #write}. */
    static Written collect(InferResponse response, ResponseFormat format, JsonChunks text, long binaryBytes) {
        ResponseBody body = collect(
                new ResponseBody(text.take(), JsonChunks.CHUNK_SIZE), response.outputs(), binaryBytes > 0, format);
        return new Written(body, text.size(), binaryBytes);
    }

    /** Sends a body that a worker wrote, and takes ownership of body and response. */
    void send(HttpServerRequest request, InferResponse response, ResponseFormat format, Written written) {
        HttpServerResponse http = request.response();
        putHeaders(http, written.binaryBytes(), written.textBytes());
        written.body().count(QueuedBytes.of(request.connection()));
        if (written.binaryBytes() > 0) {
            send(written.body(), http, response::close, format.coding());
        } else {
            response.close();
            send(written.body(), http, () -> {}, format.coding());
        }
    }

    private void send(ResponseBody body, HttpServerResponse http, Runnable sentAll, ContentCoding coding) {
        if (coding == ContentCoding.IDENTITY) {
            body.send(http, sentAll);
        } else {
            body.sendCompressed(http, sentAll, coding, context);
        }
    }

    private void putBinaryHeaders(HttpServerResponse http, int jsonSize, int size) {
        MultiMap cached = http.headers().isEmpty() ? headerCache.find(jsonSize, size) : null;
        if (cached != null) {
            http.headers().setAll(cached);
        } else {
            putHeaders(http, size - jsonSize, jsonSize);
        }
    }

    private void putHeaders(HttpServerResponse http, long binaryBytes, long jsonSize) {
        http.putHeader(HttpHeaders.CONTENT_TYPE, binaryBytes > 0 ? ContentTypes.OCTET_STREAM : ContentTypes.JSON);
        if (binaryBytes > 0) {
            http.putHeader(RequestBodyHeaders.JSON_LENGTH, Long.toString(jsonSize));
        }
    }

    private static ResponseBody collect(
            ResponseBody body, List<NamedTensor> tensors, boolean withOutputs, ResponseFormat format) {
        boolean collected = false;
        try {
            for (int i = 0; withOutputs && i < tensors.size(); i++) {
                if (format.outputs().format(tensors.get(i).name()) == RequestedOutputs.Format.BINARY) {
                    body.add(tensors.get(i).tensor().data());
                }
            }
            collected = true;
            return body;
        } finally {
            if (!collected) {
                body.close();
            }
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
