package dev.nereid.http.body;

import dev.nereid.api.InferenceException;
import dev.nereid.api.InferenceServer;
import dev.nereid.api.Quoted;
import dev.nereid.api.RefusalCause;
import dev.nereid.api.RequestProtocol;
import java.net.HttpURLConnection;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Counts refused requests and logs failed ones. Static functions only. */
public final class RequestFailures {
    private static final Logger LOG = LoggerFactory.getLogger(RequestFailures.class);

    private RequestFailures() {}

    /**
     * Counts and logs a request that the front end refuses.
     *
     * @param id the request's id; empty if it has none, or was not read
     * @param model the model, or the path if the model is unknown
     */
    public static InferenceException refuse(InferenceServer server, String id, Object model, InferenceException error) {
        InferenceException refused = server.refusals().refuse(RequestProtocol.HTTP, error);
        log(id, model, refused);
        return refused;
    }

    /** Counts and logs a request that is refused before it reaches a handler. */
    public static void refuse(InferenceServer server, String path, RefusalCause cause, int status) {
        server.refusals().count(RequestProtocol.HTTP, cause);
        if (LOG.isDebugEnabled()) {
            LOG.atDebug()
                    .addKeyValue("path", Quoted.text(path))
                    .addKeyValue("status", status)
                    .addKeyValue("cause", cause.label())
                    .log("request failed");
        }
    }

    /** Logs a request that failed in the server; its id is empty if it has none. */
    public static InferenceException fail(InferenceServer server, String id, Object model, InferenceException error) {
        InferenceException translated = server.refusals().translate(error);
        log(id, model, translated);
        return translated;
    }

    /** Logs a request that the server failed or refused. */
    public static void log(String id, Object model, InferenceException error) {
        if (LOG.isDebugEnabled()) {
            LOG.atDebug()
                    .addKeyValue("requestId", Quoted.text(id))
                    .addKeyValue("model", model)
                    .addKeyValue("status", HttpErrors.status(error.code()))
                    .addKeyValue("text", error.publicMessage())
                    .log("request failed");
        }
    }

    /** Logs a request that failed with an internal error of the front end. */
    public static void logInternal(String id, Object model) {
        if (LOG.isDebugEnabled()) {
            LOG.atDebug()
                    .addKeyValue("requestId", Quoted.text(id))
                    .addKeyValue("model", model)
                    .addKeyValue("status", HttpURLConnection.HTTP_INTERNAL_ERROR)
                    .log("request failed");
        }
    }
}
