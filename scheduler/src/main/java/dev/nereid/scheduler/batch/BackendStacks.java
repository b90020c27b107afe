package dev.nereid.scheduler.batch;

import dev.nereid.api.ThreadStack;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Stacks of the threads that are in code of a backend, for the log. Static functions only. */
public final class BackendStacks {
    /** The number of threads in a report. */
    private static final int MAX_THREADS = 4;

    private BackendStacks() {}

    /**
     * Reads the stacks of a backend's threads.
     *
     * @param backend knows its threads
     * @return the stacks of some of them, the first with the others; {@code null} if none is in code of the backend
     */
    public static @Nullable Throwable of(BackendCallbacks backend) {
        ThreadStack first = null;
        int count = 0;
        for (Map.Entry<Thread, StackTraceElement[]> one : backend.threads().entrySet()) {
            ThreadStack stack = ThreadStack.of(one.getKey(), one.getValue());
            if (first == null) {
                first = stack;
            } else if (count < MAX_THREADS) {
                first.addOther(stack);
            }
            count++;
        }
        return first;
    }
}
