package dev.nereid.scheduler.memory;

import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Keeps a request, and so its inputs, until it is run. Lock-free; safe for use by any thread.
 *
 * <p>The request stays counted as in flight, and its bytes in the load.
 */
public final class InputLease implements Runnable {
    private final Runnable release;
    private final List<ReferenceCountedMemory> added;
    private final AtomicBoolean ended = new AtomicBoolean();

    /** Runs at the end; set before another thread has the lease. */
    private Runnable onEnd = () -> {};

    /** Takes over references: one by {@code release} to the request, and one to the memory of each added input. */
    public InputLease(Runnable release, List<ReferenceCountedMemory> added) {
        this.release = release;
        this.added = added;
    }

    /** Sets the short action that runs at the end, before the release. Called before another thread has the lease. */
    public void onEnd(Runnable action) {
        onEnd = action;
    }

    public boolean isEnded() {
        return ended.get();
    }

    @Override
    public void run() {
        end(() -> {});
    }

    /** Ends the lease, unless ended, after an action: a thread that sees the memory released sees its effects. */
    public void end(Runnable before) {
        if (ended.compareAndSet(false, true)) {
            try {
                onEnd.run();
                before.run();
            } finally {
                release();
            }
        }
    }

    private void release() {
        try {
            for (int i = 0; i < added.size(); i++) {
                added.get(i).release();
            }
        } finally {
            release.run();
        }
    }
}
