package dev.nereid.scheduler.instance;

/**
 * The thread of an instance that is placed on some processors. A thread that it starts would inherit its place from the
 * operating system.
 */
final class PlacedThread extends Thread {
    /**
     * Creates a thread that is not started.
     *
     * @param task places the thread first
     */
    PlacedThread(Runnable task, String name) {
        super(null, task, name, 0, false);
    }
}
