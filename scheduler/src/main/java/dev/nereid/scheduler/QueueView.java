package dev.nereid.scheduler;

/** A queue as its planner sees it, oldest request first. Confined to the lock of the queue. */
interface QueueView {
    /** Returns the number of places in the queue, empty ones included. */
    int length();

    /**
     * Returns the size of a request.
     *
     * @param index its place, from 0
     * @param nowNanos the time
     * @return its items, or 0 if it was withdrawn meanwhile, so that its place is empty
     */
    int items(int index, long nowNanos);

    /** Returns when the request at a place arrived. */
    long enqueuedNanos(int index);

    /** Says whether the inputs of the request at a place may be executed together with those of the first request. */
    boolean joinsFirst(int index);
}
