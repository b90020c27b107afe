package dev.nereid.distribution.flags;

import dev.nereid.api.Quoted;
import dev.nereid.distribution.process.StartException;
import java.util.Map;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads {@code TRITONSERVER_DELAY_SCHEDULER}, which delays the first batch of dynamic batchers in tests. Static
 * functions only.
 */
final class SchedulerDelay {
    /** An environment variable without a flag, as in the reference server. */
    static final String VARIABLE = "TRITONSERVER_DELAY_SCHEDULER";

    private static final Logger LOG = LoggerFactory.getLogger(SchedulerDelay.class);

    private SchedulerDelay() {}

    /**
     * Returns the number of requests to wait for, as {@link #requests} does. Logs a warning if there are any.
     *
     * @throws StartException if the value is not a number
     */
    static int read(Map<String, String> environment) throws StartException {
        int requests = requests(environment);
        if (requests > 0) {
            LOG.warn(
                    "{}={}: models with dynamic batching execute nothing until {} requests wait for them, once; for"
                            + " tests only",
                    VARIABLE,
                    requests,
                    requests);
        }
        return requests;
    }

    /** Returns the number of requests to wait for; 0 if the variable is not set. */
    static int requests(Map<String, String> environment) throws StartException {
        String value = environment.getOrDefault(VARIABLE, "").strip();
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
        throw new StartException(VARIABLE + ": '" + Quoted.text(value) + "' (expected: a number of requests, from 0 to "
                + Integer.MAX_VALUE + ")");
    }
}
