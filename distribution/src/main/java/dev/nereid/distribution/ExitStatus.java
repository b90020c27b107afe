package dev.nereid.distribution;

/** What a process tells its caller at the end. Constants only. */
final class ExitStatus {
    /** All went well. */
    static final int SUCCESS = 0;

    /** The server could not start, or could not stop in time. */
    static final int FAILURE = 1;

    /** The command line was wrong. */
    static final int USAGE = 2;

    /** Heap, metaspace or threads were exhausted. */
    static final int OUT_OF_MEMORY = 3;

    /** What is added to the number of a signal that ends the process at once, as shells do. */
    static final int SIGNAL = 128;

    private ExitStatus() {}
}
