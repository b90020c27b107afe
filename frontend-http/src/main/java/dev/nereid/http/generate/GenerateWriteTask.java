package dev.nereid.http.generate;

import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.http.json.JsonChunks;
import dev.nereid.http.json.JsonFields;
import dev.nereid.http.json.JsonMemoryLimiter;
import java.util.Optional;
import java.util.concurrent.CancellationException;
import java.util.function.BooleanSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Writes a large {@code generate} response on a worker. Owned by the worker that runs it, which closes the response,
 * and afterwards by the event loop that sends the text.
 */
final class GenerateWriteTask implements Runnable {
    private static final Logger LOG = LoggerFactory.getLogger(GenerateWriteTask.class);

    private final InferResponse response;
    private final boolean isEvent;
    private final JsonChunks chunks;
    /** Present until all is written, so that a truncated text never counts as complete. */
    private Optional<InferenceException> error = Optional.of(JsonFields.internal("internal error"));

    /** Takes ownership of a response. {@code abandoned} returns whether the client is gone. */
    GenerateWriteTask(InferResponse response, BooleanSupplier abandoned, JsonMemoryLimiter memory, boolean isEvent) {
        this.response = response;
        this.isEvent = isEvent;
        this.chunks = new JsonChunks(abandoned, memory);
    }

    @Override
    public void run() {
        try {
            GenerateResponseWriter.writeChunks(response, chunks, isEvent);
            error = Optional.empty();
        } catch (InferenceException e) {
            error = Optional.of(e);
        } catch (CancellationException e) { // the client is gone
            error = Optional.of(JsonFields.internal("request was cancelled"));
        } catch (RuntimeException | Error e) {
            LOG.atError().addKeyValue("model", response.model()).setCause(e).log("response not written");
        } finally {
            if (error.isPresent()) {
                chunks.close();
            }
        }
    }

    /** Returns the text, to be closed or taken; empty after an error. */
    JsonChunks chunks() {
        return chunks;
    }

    Optional<InferenceException> error() {
        return error;
    }
}
