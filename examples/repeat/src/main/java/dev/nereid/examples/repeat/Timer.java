package dev.nereid.examples.repeat;

/** Runs actions later. Safe for use by any thread. */
interface Timer {
    /**
     * Runs an action once.
     *
     * @param action the action, run on any thread
     * @param delayMillis when, in milliseconds from now
     */
    void run(Runnable action, long delayMillis);
}
