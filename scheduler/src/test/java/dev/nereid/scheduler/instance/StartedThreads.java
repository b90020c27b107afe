package dev.nereid.scheduler.instance;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;

/** Starts threads, or fails to. Records the names. Safe for use by any thread. */
final class StartedThreads implements Consumer<Thread> {
    static final String NO_MEMORY =
            "unable to create native thread: possibly out of memory or process/resource limits reached";

    private final List<String> names = new CopyOnWriteArrayList<>();
    private final AtomicInteger failures = new AtomicInteger();

    /** The action that runs before a start fails. */
    private volatile Runnable meanwhile = () -> {};

    /** Makes the next starts fail. */
    void fail(int starts) {
        failures.set(starts);
    }

    /** Makes the next start fail, after an action. */
    void failAfter(Runnable action) {
        meanwhile = action;
        fail(1);
    }

    @Override
    public void accept(Thread thread) {
        if (failures.getAndUpdate(left -> Math.max(0, left - 1)) > 0) {
            meanwhile.run();
            throw new OutOfMemoryError(NO_MEMORY);
        }
        names.add(thread.getName());
        thread.start();
    }

    /** Returns the names of the started threads. */
    List<String> names() {
        return names;
    }
}
