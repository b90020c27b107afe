package dev.nereid.api;

import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Runs code that only informs: tables, examples, hints, metrics and reports in the log. Static functions only.
 *
 * <p>Failures are logged and do not end the calling thread, a start or a request. A
 * {@linkplain FatalErrorHandler#find fatal error}, such as a full heap, is thrown.
 */
public final class BestEffort {
    private static final Logger LOG = LoggerFactory.getLogger(BestEffort.class);

    private BestEffort() {}

    /**
     * Runs a task. Throws fatal errors alone.
     *
     * @param what the information, for the log
     * @param task the task
     */
    public static void run(String what, Runnable task) {
        try {
            task.run();
        } catch (RuntimeException | Error e) {
            log(what, e);
        }
    }

    /**
     * Returns a value. Throws fatal errors alone.
     *
     * @param what the information, for the log
     * @param otherwise the value after a failure
     * @param source computes the value
     * @param <T> the type of the value
     * @return the computed value, or the one after a failure
     */
    public static <T> T get(String what, T otherwise, Supplier<? extends T> source) {
        try {
            return source.get();
        } catch (RuntimeException | Error e) {
            log(what, e);
            return otherwise;
        }
    }

    private static void log(String what, Throwable failure) {
        OutOfMemoryError fatal = FatalErrorHandler.find(failure);
        if (fatal != null) {
            throw fatal;
        }
        try {
            LOG.atWarn().addKeyValue("what", what).setCause(failure).log("information is incomplete: {}", what);
        } catch (RuntimeException | StackOverflowError | LinkageError _) {
            // The failure itself cannot be printed.
        }
    }
}
