package dev.nereid.scheduler;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Logs what must not have happened to a request. Static functions only. */
final class RequestLog {
    private static final Logger LOG = LoggerFactory.getLogger(RequestLog.class);

    private RequestLog() {}

    static void error(CheckedCall call, String event, Throwable cause) {
        LOG.atError()
                .addKeyValue("model", call.model())
                .addKeyValue("version", call.version())
                .addKeyValue("requestId", call.id())
                .setCause(cause)
                .log(event);
    }
}
