package dev.nereid.http;

import dev.nereid.api.InferResponse;
import dev.nereid.api.NamedTensor;
import dev.nereid.spi.ParameterValue;
import dev.nereid.spi.Tensor;
import io.vertx.core.Context;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.http.HttpHeaders;
import io.vertx.core.http.HttpServerResponse;
import java.util.List;
import java.util.Map;

/**
 * Writes the response of an inference: a JSON text, followed by the bytes of the binary outputs. Confined to one event
 * loop.
 *
 * <p>Large binary outputs leave from where they lie; the response is closed when the last byte is out. Small ones are
 * copied behind the JSON, which is cheaper than another write.
 */
final class InferResponseWriter {
    private static final CharSequence JSON_LENGTH = HttpHeaders.createOptimized("Inference-Header-Content-Length");
    private static final CharSequence BYTES = HttpHeaders.createOptimized("application/octet-stream");
    /** Up to so many bytes in all are copied. */
    private static final long MOST_COPIED = 4096;

    /** Larger bodies are sent in several writes. */
    private static final long MOST_AT_ONCE = 1 << 30;

    private final Context context;
    private final long mostAtOnce;
    private final JsonWriter json = new JsonWriter();

    /** Creates the writer of one event loop. */
    InferResponseWriter(Context context) {
        this(context, MOST_AT_ONCE);
    }

    /** Creates a writer that sends no more than so many bytes in one write. */
    InferResponseWriter(Context context, long mostAtOnce) {
        this.context = context;
        this.mostAtOnce = mostAtOnce;
    }

    /**
     * Answers a request, and takes the response over.
     *
     * @throws dev.nereid.api.InferenceException if an output cannot be written; nothing was, and the response is still
     *     the caller's
     * @throws InternalError if an output lies in shared memory that is not there any more; likewise
     */
    void write(HttpServerResponse http, InferResponse response, AnswerForm form) {
        json.clear();
        long binaryBytes = writeJson(response, form.outputs());
        int jsonSize = json.size();
        if (binaryBytes > 0 && binaryBytes <= MOST_COPIED) {
            appendBinary(response.outputs(), form.outputs());
        }
        if (binaryBytes > MOST_COPIED || form.coding() != ContentCoding.IDENTITY) {
            LargeBody body = collect(response.outputs(), binaryBytes > MOST_COPIED, form);
            putHeaders(http, binaryBytes, jsonSize);
            if (form.coding() == ContentCoding.IDENTITY) {
                body.send(http, response);
            } else {
                body.sendCoded(http, response, form.coding(), context);
            }
            return;
        }
        putHeaders(http, binaryBytes, jsonSize);
        Buffer body = json.take();
        response.close();
        http.end(body);
    }

    private static void putHeaders(HttpServerResponse http, long binaryBytes, int jsonSize) {
        http.putHeader(HttpHeaders.CONTENT_TYPE, binaryBytes > 0 ? BYTES : HttpErrors.JSON);
        if (binaryBytes > 0) {
            http.putHeader(JSON_LENGTH, Integer.toString(jsonSize));
        }
    }

    /** Collects what was written so far, and what is large enough not to be copied. */
    private LargeBody collect(List<NamedTensor> tensors, boolean withOutputs, AnswerForm form) {
        LargeBody body = new LargeBody(json, mostAtOnce);
        try {
            for (int i = 0; withOutputs && i < tensors.size(); i++) {
                Tensor tensor = tensors.get(i).tensor();
                if (form.outputs().form(tensors.get(i).name()) != RequestedOutputs.Form.BINARY) {
                    continue;
                }
                if (form.isShared(tensor)) {
                    body.addCopy(tensor.data());
                } else {
                    body.add(tensor.data());
                }
            }
            return body;
        } catch (RuntimeException | InternalError e) {
            body.close();
            throw e;
        }
    }

    private void appendBinary(List<NamedTensor> tensors, RequestedOutputs outputs) {
        for (NamedTensor output : tensors) {
            if (outputs.form(output.name()) == RequestedOutputs.Form.BINARY) {
                json.raw(output.tensor().data());
            }
        }
    }

    /** Writes the JSON and returns how many bytes are to follow it. */
    private long writeJson(InferResponse response, RequestedOutputs outputs) {
        json.raw("{");
        if (!response.id().isEmpty()) {
            json.raw("\"id\":").string(response.id()).raw(",");
        }
        json.raw("\"model_name\":").string(response.model());
        json.raw(",\"model_version\":\"").integer(response.version()).raw("\"");
        if (!response.parameters().isEmpty()) {
            writeParameters(response.parameters());
        }
        json.raw(",\"outputs\":[");
        long binaryBytes = 0;
        List<NamedTensor> tensors = response.outputs();
        for (int i = 0; i < tensors.size(); i++) {
            json.raw(i == 0 ? "{\"name\":" : ",{\"name\":");
            binaryBytes +=
                    writeOutput(tensors.get(i), outputs.form(tensors.get(i).name()));
        }
        json.raw("]}");
        return binaryBytes;
    }

    private long writeOutput(NamedTensor output, RequestedOutputs.Form form) {
        Tensor tensor = output.tensor();
        if (!tensor.place().isHost() && form != RequestedOutputs.Form.SHARED) {
            throw JsonFields.internal("output '" + output.name() + "' lies in memory of a device");
        }
        json.string(output.name()).raw(",\"datatype\":\"").raw(tensor.type().name());
        json.raw("\",\"shape\":[");
        for (int i = 0; i < tensor.shape().rank(); i++) {
            json.raw(i == 0 ? "" : ",").integer(tensor.shape().dim(i));
        }
        json.raw("]");
        switch (form) {
            case SHARED -> json.raw("}");
            case BINARY ->
                json.raw(",\"parameters\":{\"binary_data_size\":")
                        .integer(tensor.byteSize())
                        .raw("}}");
            case JSON -> {
                json.raw(",\"data\":");
                JsonTensorWriter.write(json, output);
                json.raw("}");
            }
        }
        return form == RequestedOutputs.Form.BINARY ? tensor.byteSize() : 0;
    }

    private void writeParameters(Map<String, ParameterValue> parameters) {
        json.raw(",\"parameters\":");
        String separator = "{";
        for (Map.Entry<String, ParameterValue> parameter : parameters.entrySet()) {
            json.raw(separator).string(parameter.getKey()).raw(":");
            switch (parameter.getValue()) {
                case ParameterValue.Bool bool -> json.raw(Boolean.toString(bool.value()));
                case ParameterValue.Int number -> json.integer(number.value());
                case ParameterValue.Real number -> json.real(number.value());
                case ParameterValue.Text text -> json.string(text.value());
            }
            separator = ",";
        }
        json.raw("}");
    }
}
