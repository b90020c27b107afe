package dev.nereid.api;

import org.jspecify.annotations.Nullable;

/**
 * Handles errors after which the process may be unable to serve. <em>Implemented by programs that embed a
 * server.</em>
 *
 * <p>{@link #onFatalError} is called on the thread that caught the error, possibly by several threads at once. It must
 * not block, and there may be no memory left for it to use.
 */
@FunctionalInterface
public interface FatalErrorHandler {
    /** Does nothing. */
    FatalErrorHandler NONE = error -> {};

    /** Chains of causes may be circular. */
    int MAX_CAUSES = 8;

    /**
     * Handles a fatal error.
     *
     * @param error an error for which {@link #find} returned itself
     */
    void onFatalError(OutOfMemoryError error);

    /**
     * Handles a fatal error, if a throwable is one or was caused by one. Allocates nothing.
     *
     * @param thrown the caught throwable; {@code null} for none
     */
    default void check(@Nullable Throwable thrown) {
        OutOfMemoryError error = find(thrown);
        if (error != null) {
            onFatalError(error);
        }
    }

    /**
     * Handles the end of a thread that serves as long as the server does, such as that of timeouts, of an event loop or of
     * an instance. The server has not begun to close. Called once for each thread, on any thread; does nothing by default.
     * Not called for threads of pools, which replace a thread that ends.
     *
     * @param thread the name of the thread
     */
    default void onThreadEnded(String thread) {}

    /**
     * Finds a fatal error. An {@link OutOfMemoryError} is fatal if its message is one of the virtual machine's for
     * exhausted heap, metaspace or threads. Refused direct, native or mapped memory, and arrays that are too long, fail
     * one request alone. Allocates nothing.
     *
     * @param thrown the caught throwable; {@code null} for none
     * @return the error or its first fatal cause; {@code null} if there is none
     */
    static @Nullable OutOfMemoryError find(@Nullable Throwable thrown) {
        Throwable candidate = thrown;
        for (int depth = 0; candidate != null && depth < MAX_CAUSES; depth++) {
            if (candidate instanceof OutOfMemoryError error && isFatal(error.getMessage())) {
                return error;
            }
            candidate = candidate.getCause();
        }
        return null;
    }

    private static boolean isFatal(@Nullable String message) {
        return message != null
                && (message.startsWith("Java heap space")
                        || message.startsWith("GC overhead limit exceeded")
                        || message.startsWith("Metaspace")
                        || message.startsWith("Compressed class space")
                        || message.startsWith("unable to create native thread")
                        || message.startsWith("unable to create new native thread"));
    }
}
