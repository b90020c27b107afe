package dev.nereid.distribution.process;

/** Exit codes of the process. Constants only. */
public final class ExitStatus {
    /** All went well. */
    public static final int SUCCESS = 0;

    /** The server could not start, or could not stop in time. */
    public static final int FAILURE = 1;

    /** The command line was wrong. */
    public static final int USAGE = 2;

    /** Heap, metaspace or threads were exhausted. */
    public static final int OUT_OF_MEMORY = 3;

    /** What is added to the number of a signal that ends the process at once, as shells do. */
    public static final int SIGNAL = 128;

    private ExitStatus() {}
}
