package dev.nereid.scheduler.request;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Logs unexpected failures of requests. Static functions only. */
public final class RequestLog {
    private static final Logger LOG = LoggerFactory.getLogger(RequestLog.class);

    private RequestLog() {}

    /** Logs a failure with the model, version and id of its request. */
    public static void error(CheckedRequest request, String event, Throwable cause) {
        LOG.atError()
                .addKeyValue("model", request.model())
                .addKeyValue("version", request.version())
                .addKeyValue("requestId", request.id())
                .setCause(cause)
                .log(event + " (model '{}', version {})", request.model(), request.version());
    }
}
