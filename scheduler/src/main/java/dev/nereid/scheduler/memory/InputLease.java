package dev.nereid.scheduler.memory;

import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Holds a request, and so its inputs, until it is run. Lock-free; safe for use by any thread.
 *
 * <p>The request stays counted as in flight, and its bytes in the load.
 */
public final class InputLease implements Runnable {
    private final Runnable release;
    private final List<ReferenceCountedMemory> added;
    private final AtomicBoolean ended = new AtomicBoolean();

    /**
     * Takes over references.
     *
     * @param release releases the request, one reference to which is taken over
     * @param added the memory of the added inputs, one reference to each of which is taken over
     */
    public InputLease(Runnable release, List<ReferenceCountedMemory> added) {
        this.release = release;
        this.added = added;
    }

    @Override
    public void run() {
        if (ended.compareAndSet(false, true)) {
            for (int i = 0; i < added.size(); i++) {
                added.get(i).release();
            }
            release.run();
        }
    }
}
