package dev.nereid.distribution.flags;

import dev.nereid.api.Quoted;
import dev.nereid.distribution.process.StartException;
import dev.nereid.server.options.DelayOptions;
import java.util.Map;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads {@code TRITONSERVER_DELAY_SCHEDULER} and {@code TRITONSERVER_BACKLOG_DELAY_SCHEDULER}, which delay the first
 * batch of dynamic batchers and of models with sequences in tests. Static functions only.
 */
final class DelayVariables {
    /** An environment variable without a flag, as in the reference server. */
    static final String VARIABLE = "TRITONSERVER_DELAY_SCHEDULER";

    /** The same for requests in the backlog of sequences. */
    static final String BACKLOG = "TRITONSERVER_BACKLOG_DELAY_SCHEDULER";

    private static final Logger LOG = LoggerFactory.getLogger(DelayVariables.class);

    private DelayVariables() {}

    /** Returns the numbers of requests to wait for, as {@link #delay} does. Logs a warning if there are any. */
    static DelayOptions read(Map<String, String> environment) throws StartException {
        DelayOptions delay = delay(environment);
        if (delay.requests() > 0) {
            LOG.warn(
                    "{}={}: models with dynamic batching or sequences execute nothing until {} requests wait for them,"
                            + " once; for tests only",
                    VARIABLE,
                    delay.requests(),
                    delay.requests());
        }
        if (delay.backlogged() > 0) {
            LOG.warn(
                    "{}={}: models with sequences and the direct strategy execute nothing until {} requests wait in"
                            + " their backlog, once; for tests only",
                    BACKLOG,
                    delay.backlogged(),
                    delay.backlogged());
        }
        return delay;
    }

    /** Returns the numbers of requests to wait for; 0 where a variable is not set. */
    static DelayOptions delay(Map<String, String> environment) throws StartException {
        return new DelayOptions(number(environment, VARIABLE), number(environment, BACKLOG));
    }

    private static int number(Map<String, String> environment, String variable) throws StartException {
        String value = environment.getOrDefault(variable, "").strip();
        if (value.isEmpty()) {
            return 0;
        }
        try {
            int requests = Integer.parseInt(value);
            if (requests >= 0) {
                return requests;
            }
        } catch (NumberFormatException _) {
            // reported below
        }
        throw new StartException(variable + ": '" + Quoted.text(value) + "' (expected: a number of requests, from 0 to "
                + Integer.MAX_VALUE + ")");
    }
}
