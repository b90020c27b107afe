package dev.nereid.http.generate;

import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.NamedTensor;
import dev.nereid.http.body.HttpErrors;
import dev.nereid.http.json.JsonChunks;
import dev.nereid.http.json.JsonFields;
import dev.nereid.http.json.JsonParameterValues;
import dev.nereid.http.json.JsonTensorWriter;
import dev.nereid.http.json.JsonWriter;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import io.vertx.core.buffer.Buffer;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CancellationException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Writes a {@code generate} response: one object of outputs and parameters. Confined to one event loop, except for long
 * responses.
 */
final class GenerateResponseWriter {
    private static final Logger LOG = LoggerFactory.getLogger(GenerateResponseWriter.class);
    private static final String NO_MEMORY = "not enough memory to write the response as JSON";
    private static final String EVENT = "data: ";
    private static final String END = "\n\n";

    private final JsonWriter json;

    GenerateResponseWriter() {
        this(new JsonWriter());
    }

    private GenerateResponseWriter(JsonWriter json) {
        this.json = json;
    }

    static long jsonBytes(InferResponse response) {
        long bytes = response.id().length();
        for (NamedTensor output : response.outputs()) {
            bytes += output.tensor().byteSize();
        }
        return bytes;
    }

    /**
     * Writes a long response in chunks, on any thread, and closes it.
     *
     * @throws InferenceException if it cannot be written
     * @throws CancellationException if the client is gone
     */
    static void writeChunks(InferResponse response, JsonChunks text, boolean isEvent) {
        close(response, () -> {
            JsonWriter json = new JsonWriter(text);
            new GenerateResponseWriter(json).writeObject(response, isEvent ? EVENT : "", isEvent ? END : "");
            json.flush();
        });
    }

    /** Writes a response, and closes it; throws {@link InferenceException} if it cannot be written. */
    Buffer write(InferResponse response) {
        return take(response, "", "");
    }

    /** Writes a response as an event of a stream, and closes it; throws as {@link #write(InferResponse)} does. */
    Buffer writeEvent(InferResponse response) {
        return take(response, EVENT, END);
    }

    static Buffer errorEvent(InferenceException error) {
        return Buffer.buffer(EVENT)
                .appendBuffer(HttpErrors.body(error.publicMessage()))
                .appendString(END);
    }

    private Buffer take(InferResponse response, String begin, String end) {
        close(response, () -> {
            json.clear();
            writeObject(response, begin, end);
        });
        return json.take();
    }

    private void writeObject(InferResponse response, String begin, String end) {
        json.raw(begin);
        writeMembers(response);
        json.raw(end);
    }

    private static void close(InferResponse response, Runnable writing) {
        try (response) {
            writing.run();
        } catch (InferenceException | CancellationException e) {
            throw e;
        } catch (RuntimeException e) {
            LOG.atError().addKeyValue("model", response.model()).setCause(e).log("response not written");
            throw JsonFields.internal("internal error");
        } catch (OutOfMemoryError e) { // most likely caused by the text, though other threads allocate too
            throw new InferenceException(ErrorCode.UNAVAILABLE, NO_MEMORY);
        }
    }

    private void writeMembers(InferResponse response) {
        Map<String, Runnable> members = new TreeMap<>();
        if (!response.id().isEmpty()) {
            members.put("id", () -> json.string(response.id()));
        }
        members.put("model_name", () -> json.string(response.model()));
        members.put(
                "model_version",
                () -> json.raw("\"").integer(response.version()).raw("\""));
        response.parameters().forEach((name, value) -> members.put(name, () -> JsonParameterValues.write(json, value)));
        for (NamedTensor output : response.outputs()) {
            members.put(output.name(), () -> write(output));
        }
        String separator = "{";
        for (Map.Entry<String, Runnable> member : members.entrySet()) {
            json.raw(separator).string(member.getKey()).raw(":");
            member.getValue().run();
            separator = ",";
        }
        json.raw("}");
    }

    /** Writes a single element without brackets, several rows as arrays in an array, anything else as a flat array. */
    private void write(NamedTensor output) {
        Tensor tensor = output.tensor();
        if (!tensor.place().isHost()) {
            throw JsonFields.internal("output '" + output.name() + "' lies in memory of a device");
        }
        Shape shape = tensor.shape();
        if (shape.elementCount() == 1) {
            JsonTensorWriter.writeElements(json, output);
        } else if (shape.rank() > 1 && shape.dim(0) > 1) {
            JsonTensorWriter.writeNested(json, output);
        } else {
            JsonTensorWriter.write(json, output);
        }
    }
}
