package dev.nereid.distribution.process;

/** Exit codes of the process. Constants only. */
public final class ExitStatus {
    public static final int SUCCESS = 0;

    /** The server could not start, or could not stop in time. */
    public static final int FAILURE = 1;

    /** The command line was invalid. */
    public static final int USAGE = 2;

    /** Heap, metaspace or threads were exhausted. */
    public static final int OUT_OF_MEMORY = 3;

    /** Base of exit codes for signals that end the process at once: 128 plus the signal's number, as in shells. */
    public static final int SIGNAL = 128;

    private ExitStatus() {}
}
