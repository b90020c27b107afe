package dev.nereid.grpc;

import dev.nereid.api.InferenceException;
import dev.nereid.api.Quoted;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Logs requests that fail, where the log wants them. Static functions only. */
final class RequestFailures {
    private static final Logger LOG = LoggerFactory.getLogger(RequestFailures.class);

    private RequestFailures() {}

    /**
     * Logs a request that failed.
     *
     * @param id the client's name for the request; empty if it has none, or was not read
     * @param model the model, or the method if it is none of a model
     */
    static void log(String id, String model, InferenceException error) {
        if (LOG.isDebugEnabled()) {
            LOG.atDebug()
                    .addKeyValue("requestId", Quoted.text(id))
                    .addKeyValue("model", Quoted.text(model))
                    .addKeyValue("status", GrpcErrors.name(error))
                    .addKeyValue("text", error.publicMessage())
                    .log("request failed");
        }
    }
}
