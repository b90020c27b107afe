package dev.nereid.scheduler.request;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Logs unexpected failures of requests. Static functions only. */
public final class RequestLog {
    private static final Logger LOG = LoggerFactory.getLogger(RequestLog.class);

    private RequestLog() {}

    public static void error(CheckedRequest call, String event, Throwable cause) {
        LOG.atError()
                .addKeyValue("model", call.model())
                .addKeyValue("version", call.version())
                .addKeyValue("requestId", call.id())
                .setCause(cause)
                .log(event);
    }
}
