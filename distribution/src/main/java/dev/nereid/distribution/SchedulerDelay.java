package dev.nereid.distribution;

import dev.nereid.api.Quoted;
import dev.nereid.server.NereidServerBuilder;
import java.util.Map;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Reads the variable of the environment that holds dynamic batchers back, for tests. Static functions only. */
final class SchedulerDelay {
    /** The reference server's name; it has no flag either. */
    static final String VARIABLE = "TRITONSERVER_DELAY_SCHEDULER";

    private static final Logger log = LoggerFactory.getLogger(SchedulerDelay.class);

    private SchedulerDelay() {}

    /**
     * Sets what the environment asks for, and warns of it.
     *
     * @throws StartFailure if the value is no number
     */
    static void apply(NereidServerBuilder builder, Map<String, String> environment) throws StartFailure {
        int requests = requests(environment);
        if (requests > 0) {
            log.warn(
                    "{}={}: models with dynamic batching execute nothing until {} requests wait for them, once; for"
                            + " tests only",
                    VARIABLE,
                    requests,
                    requests);
            builder.schedulerDelay(requests);
        }
    }

    /** Returns how many requests have to wait; 0 if the variable is not set. */
    static int requests(Map<String, String> environment) throws StartFailure {
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
            // said below
        }
        throw new StartFailure(VARIABLE + ": '" + Quoted.text(value) + "' (expected: a number of requests, from 0 to "
                + Integer.MAX_VALUE + ")");
    }
}
