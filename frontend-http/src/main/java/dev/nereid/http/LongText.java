package dev.nereid.http;

import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import java.util.Optional;
import java.util.concurrent.CancellationException;
import java.util.function.BooleanSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A long response of a text generator while it is written. Owned by the worker that runs it, which closes the response,
 * and afterwards by the event loop that sends the text.
 */
final class LongText implements Runnable {
    private static final Logger log = LoggerFactory.getLogger(LongText.class);

    private final InferResponse response;
    private final boolean isEvent;
    private final TextPieces text;
    /** Present until all is written, so that a text whose writing ends in any other way is not taken for a whole one. */
    private Optional<InferenceException> error = Optional.of(JsonFields.internal("internal error"));

    /**
     * Takes a response over.
     *
     * @param response the response
     * @param abandoned says whether nobody wants it any more
     * @param memory bounds the memory of all texts
     * @param isEvent whether it is an event of a stream
     */
    LongText(InferResponse response, BooleanSupplier abandoned, TextMemory memory, boolean isEvent) {
        this.response = response;
        this.isEvent = isEvent;
        this.text = new TextPieces(abandoned, memory);
    }

    @Override
    public void run() {
        try {
            GenerateResponseWriter.writeLong(response, text, isEvent);
            error = Optional.empty();
        } catch (InferenceException e) {
            error = Optional.of(e);
        } catch (CancellationException e) { // the client left: nobody will see this
            error = Optional.of(JsonFields.internal("request was cancelled"));
        } catch (RuntimeException | Error e) {
            log.atError().addKeyValue("model", response.model()).setCause(e).log("response not written");
        } finally {
            if (error.isPresent()) {
                text.close();
            }
        }
    }

    /** Returns the text, to be closed or taken; empty if there is an error. */
    TextPieces text() {
        return text;
    }

    /** Returns why the text could not be written. */
    Optional<InferenceException> error() {
        return error;
    }
}
