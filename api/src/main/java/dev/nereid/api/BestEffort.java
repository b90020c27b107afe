package dev.nereid.api;

import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Runs code that only informs: tables, examples, hints, metrics and reports in the log. Static functions only.
 *
 * <p>Failures of any kind are logged and end nothing: neither the calling thread, nor a start, nor a request. The log
 * reports fatal errors among them.
 */
public final class BestEffort {
    private static final Logger LOG = LoggerFactory.getLogger(BestEffort.class);

    private BestEffort() {}

    /**
     * Runs a task. Throws nothing.
     *
     * @param what the information, for the log
     * @param task the task
     */
    public static void run(String what, Runnable task) {
        try {
            task.run();
        } catch (Throwable e) {
            log(what, e);
        }
    }

    /**
     * Returns a value. Throws nothing.
     *
     * @param what the information, for the log
     * @param otherwise the value after a failure
     * @param source computes the value
     */
    public static <T> T get(String what, T otherwise, Supplier<? extends T> source) {
        try {
            return source.get();
        } catch (Throwable e) {
            log(what, e);
            return otherwise;
        }
    }

    private static void log(String what, Throwable failure) {
        try {
            LOG.atWarn().addKeyValue("what", what).setCause(failure).log("information is incomplete");
        } catch (Throwable _) {
            // There is nothing left to inform with.
        }
    }
}
