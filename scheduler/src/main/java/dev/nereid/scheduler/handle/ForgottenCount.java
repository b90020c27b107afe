package dev.nereid.scheduler.handle;

import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/** How many of one kind a plugin has forgotten, and how many of them were reported. Safe for use by any thread. */
public final class ForgottenCount {
    private final AtomicLong forgotten = new AtomicLong();
    private final AtomicLong reported = new AtomicLong();
    private final AtomicBoolean placeReported = new AtomicBoolean();

    /** Creates a count of nothing. */
    public ForgottenCount() {}

    /**
     * Returns whether places are worth recording: one was forgotten, and none with a place.
     *
     * @return whether they are
     */
    public boolean needsPlace() {
        return forgotten.get() > 0 && !placeReported.get();
    }

    /**
     * Counts one.
     *
     * @param place where the plugin got it; {@code null} if that was not recorded
     * @return how many there are so far, to be reported: with the first one, and the first one with a place; else 0
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

    /**
     * Returns how many were forgotten in all, for a last report.
     *
     * @return their number; 0 if there was a report of each
     */
    public long total() {
        long number = forgotten.get();
        return number > reported.get() ? number : 0;
    }
}
