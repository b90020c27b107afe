package dev.nereid.backend.tensorflow.graph;

/** How the operations of a graph are distributed to threads. */
public enum Executor {
    /** One after another on the calling thread, without any queue: the fastest for most models. */
    SINGLE_THREADED("one operation after another"),
    /** Any graph, on the calling thread. */
    CALLING_THREAD("operations on the calling thread"),
    /** Operations that do not depend on each other run at the same time, in a pool of threads. */
    THREAD_POOL("operations in a pool of threads");

    private final String text;

    Executor(String text) {
        this.text = text;
    }

    public String text() {
        return text;
    }
}
