package dev.nereid.api;

/** The stack trace of a thread at one moment, for the log. Confined to one thread; never thrown. */
public final class ThreadStack extends Throwable {
    private static final long serialVersionUID = 1;

    private ThreadStack(String thread, StackTraceElement[] stack) {
        super("stack of thread '" + thread + "'", null, true, true);
        setStackTrace(stack);
    }

    /**
     * Creates the stack of a thread.
     *
     * @param thread the thread
     * @param stack its stack
     * @return the stack as a throwable for a logger
     */
    public static ThreadStack of(Thread thread, StackTraceElement[] stack) {
        return new ThreadStack(thread.getName(), stack);
    }

    /**
     * Adds the stack of another thread.
     *
     * @param other its stack
     */
    public void addOther(ThreadStack other) {
        addSuppressed(other);
    }
}
