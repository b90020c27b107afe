package dev.nereid.scheduler.handle;

import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/** Counts handles of one kind that a plugin has forgotten, and their reports. Safe for use by any thread. */
public final class ForgottenCount {
    private final AtomicLong forgotten = new AtomicLong();
    private final AtomicLong reported = new AtomicLong();
    private final AtomicBoolean placeReported = new AtomicBoolean();

    public ForgottenCount() {}

    /** Returns whether places are worth recording: a handle was forgotten, and none with a place. */
    public boolean needsPlace() {
        return forgotten.get() > 0 && !placeReported.get();
    }

    /**
     * Counts a forgotten handle.
     *
     * @param place where the plugin got it; {@code null} if that was not recorded
     * @return the count so far, to be reported: with the first handle, and the first one with a place; else 0
     */
    public long add(@Nullable Throwable place) {
        long number = forgotten.incrementAndGet();
        boolean showsPlace = place != null && placeReported.compareAndSet(false, true);
        if (number > 1 && !showsPlace) {
            return 0;
        }
        reported.getAndIncrement();
        return number;
    }

    /** Returns the number of all forgotten handles, for a last report; 0 if each was reported. */
    public long total() {
        long number = forgotten.get();
        return number > reported.get() ? number : 0;
    }
}
